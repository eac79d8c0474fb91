"""What every operation of the REST interface shares. Imported by routers only: commands never load it."""
