"""Who works on what: claims with leases and tokens, the statements and transactions beneath, and who is there."""
