"""Proves scenarios: an agent that does nothing must fail them, and their reference solution must pass."""
