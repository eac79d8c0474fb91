"""REST over what is uploaded: suites, versions, scenarios, rubrics and guidance."""
