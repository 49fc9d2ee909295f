"""The laws on derivatives, one module for each kind; all compute with tensors of the backend under test.

`scenarios` has what is differentiated, `functions` the functions among that which are more than one op, `bounds` how
far a number may be off.  What the laws compare is never two floating-point numbers with a tolerance.  The computation
that runs on the backend runs on intervals, too: the backend's numbers must lie inside, and what the mathematics says
to be equal must have intervals that meet.  The first catches ops that are wrong, the second rules that are.
"""
