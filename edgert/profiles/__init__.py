"""Device profiles: what is known of a board or processor, each fact with its source and date."""
