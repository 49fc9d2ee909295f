"""A run: which cases, in which worker processes, on which backend, and what became of each."""
