"""A run: the selected cases, the worker processes that examine them, and their results."""
