"""Comparisons with other libraries, each in a session of its own: `python run.py jax`."""
