"""Record every execution of the tool under test, from outside the sandbox."""
