"""Targets: read from files, imported, edited, resolved with a worker's variables, and checked."""
