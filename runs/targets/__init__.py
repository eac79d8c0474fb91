"""Targets: read from files, taken over, changed, resolved with a worker's variables, and checked."""
