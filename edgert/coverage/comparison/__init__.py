"""Two devices on the same inputs: how far apart, from which layer on, and the smallest proof."""
