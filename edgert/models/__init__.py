"""Models: the catalog, the cache and pulls, and what a file says of itself."""
