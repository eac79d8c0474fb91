"""REST over what is run: targets, launches, runs, trials, and what is drawn from them."""
