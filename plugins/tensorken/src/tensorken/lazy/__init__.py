"""Lazy execution: eager ops are recorded and run as one program when a value is read."""
