"""Channels of a project, and the log of what was sent to them."""
