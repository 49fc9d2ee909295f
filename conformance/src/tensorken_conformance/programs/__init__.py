"""Programs: short computations as data, which are generated at random, run, checked, reduced and printed."""
