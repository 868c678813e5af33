"""What the supervisor and its workers say to each other; never pixels."""
