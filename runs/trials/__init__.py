"""Carrying trials: what they have in common, what one needs, who is asked, who judges, one by one or in a batch."""
