"""What happens to a frame: stages know no process and no shared memory."""
