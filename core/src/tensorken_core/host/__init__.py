"""The host of the plugins: it finds, checks, chooses and loads backends, and runs the command line."""
