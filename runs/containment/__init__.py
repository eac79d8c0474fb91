"""Run commands with limited files, programs, network, variables and resources."""
