"""Generate a history for benchmarks and page previews; none of its figures were measured."""
