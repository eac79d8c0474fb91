"""What a command sees of its machine: files, programs, addresses, variables, and how much it may use."""
