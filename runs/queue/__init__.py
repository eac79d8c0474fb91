"""Claims with leases and tokens, their SQL and transactions, and the registry of workers."""
