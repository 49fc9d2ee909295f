"""Functions and methods of arrays, under numpy's names."""
