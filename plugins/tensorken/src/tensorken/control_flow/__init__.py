"""Control flow that is traced, differentiated and batched: `cond`, `scan`, `fori_loop` and `while_loop`.

The public functions are in cond.py and loops.py: they trace the functions passed to them (traced_function.py) and apply
one op, whose params are the resulting programs.  The ops, with their derivative and batching rules, are in cond_op.py,
scan_op.py and while_op.py; carries.py has the code that the two loop ops share.
"""

from tensorken.control_flow.cond import cond
from tensorken.control_flow.loops import fori_loop, scan, while_loop

__all__ = ["cond", "fori_loop", "scan", "while_loop"]
