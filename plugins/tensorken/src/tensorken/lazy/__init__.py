"""Lazy execution: eager ops that wait, and run together as one program when a value is read."""
