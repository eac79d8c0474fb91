"""REST over what is uploaded: suites, versions and guidance."""
