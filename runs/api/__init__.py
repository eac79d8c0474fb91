"""REST for targets, launches, runs, trials and their results."""
