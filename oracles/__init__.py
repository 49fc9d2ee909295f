"""Comparisons with other libraries, which separate nox sessions run, such as `python run.py jax`."""
