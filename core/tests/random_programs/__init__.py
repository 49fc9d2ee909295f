"""Random programs: drawn from a seed, run in every way that there is, and compared with one another."""
