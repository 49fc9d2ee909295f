"""Control flow that is traced, differentiated and batched: branches, loops, and scans by associative functions.

The public functions are in cond.py, loops.py and associative.py.  Those of the first two trace the functions passed to
them (traced_function.py) and apply one op, whose params are the resulting programs.  The ops, with their derivative and
batching rules, are in cond_op.py, scan_op.py and while_op.py; carries.py has the code that the two loop ops share.
"""

from tensorken.control_flow.associative import associative_scan
from tensorken.control_flow.cond import cond, switch
from tensorken.control_flow.loops import fori_loop, map, scan, while_loop

__all__ = ["associative_scan", "cond", "fori_loop", "map", "scan", "switch", "while_loop"]
