"""Every public function, for every dtype, at the ends of its domain, in every mode, compared with other libraries.

A row says how a function is called and what its result should be; `python -m oracles.sweep` tries all cells and
writes docs/sweep.md.
"""
