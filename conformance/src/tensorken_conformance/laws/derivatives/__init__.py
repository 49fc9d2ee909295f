"""The laws on derivatives, one module for each kind; all compute with tensors of the backend under test.

`scenarios` has the functions to differentiate, `functions` those of several ops, `bounds` the error bounds. The laws
never compare two floating-point numbers with a tolerance. The computation that runs on the backend also runs on
intervals: the backend's numbers must lie inside, and values that are equal in exact arithmetic must have intervals that
overlap. The first detects wrong ops, the second wrong rules.
"""
