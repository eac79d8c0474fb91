"""Layer 3: what a model says of a trial by a rubric."""
