"""Rings in shared memory: slots in a memfd, tokens through pipes, a ledger that survives a kill."""
