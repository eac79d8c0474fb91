"""Benchmarks: `make bench` prints each figure, its target and its ratio to a bare loop measured in the same run."""
