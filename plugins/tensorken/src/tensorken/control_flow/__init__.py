"""Control flow that is traced, differentiated and batched: choices by a value, and loops.

What a user calls is in choices.py and loops.py: they trace the functions that they are given (bodies.py) and apply one
op, whose params are the programs of these.  The ops are in branches.py, scans.py and whiles.py, each with what its
derivatives and batches are; roles.py has what loops share.
"""

from tensorken.control_flow.cond import cond
from tensorken.control_flow.loops import fori_loop, scan, while_loop

__all__ = ["cond", "fori_loop", "scan", "while_loop"]
