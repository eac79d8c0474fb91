"""What pages and the command line do around a plan: what it costs, narrower ones, the form, options that are files."""
