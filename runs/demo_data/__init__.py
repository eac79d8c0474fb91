"""A made-up history, for benchmarks and for looking at pages; no figure in it was measured, and no test of truth uses it."""
