"""The page that imports people's sessions."""
