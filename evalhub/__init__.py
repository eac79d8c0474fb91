"""The project: settings, addresses, processes."""
