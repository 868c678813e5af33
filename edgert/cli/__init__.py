"""The command line: the only room that prints, exits, or turns an error into an exit code."""
