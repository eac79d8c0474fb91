"""Seed manifests, snapshots and tool registries, from files, addresses, commands and MCP servers."""
