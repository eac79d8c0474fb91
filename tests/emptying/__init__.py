"""An app of the tests' settings, for its `flush`."""
