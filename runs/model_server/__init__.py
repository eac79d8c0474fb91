"""A model on loopback that plays a script, so that agents run for real without a provider or a bill."""
