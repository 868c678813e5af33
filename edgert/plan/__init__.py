"""From a checked file to a frozen plan: workers, cores, rings and their bytes, devices."""
