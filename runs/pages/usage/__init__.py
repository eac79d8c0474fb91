"""The page of the tool's usage."""
