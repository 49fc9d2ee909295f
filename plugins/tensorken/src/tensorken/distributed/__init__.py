"""Programs that run in several processes or threads, each of which has one example of a named axis.

>>> import tensorken as tk
>>> def share(x):
...     return x / tk.psum(x, "workers")
>>> members = [tk.tensor(1.0), tk.tensor(3.0)]
>>> [
...     y.item()
...     for y in tk.distributed.run_threads(lambda group: tk.spread(share, group)(members[group.rank]), 2)
... ]
[0.25, 0.75]
"""

from tensorken.distributed.group import Group as Group, join as join
from tensorken.distributed.threads import run_threads as run_threads

__all__ = ["Group", "join", "run_threads"]
