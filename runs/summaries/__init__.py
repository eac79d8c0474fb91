"""What the trials of a run come to: rollups for trends and comparisons, digests for its page."""
