"""What this machine gives to edgert: cores, memory, and the limits of its control groups."""
