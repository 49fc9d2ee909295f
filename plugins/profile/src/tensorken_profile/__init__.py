"""A profiler for Tensorken: time, memory and FLOPs of each op, and the user's line that ran it.

It observes only the backend, so it sees each op once under any nesting of transforms.

>>> import tensorken as tk
>>> x = tk.eye(64)
>>> with tk.profile() as p:
...     y = (tk.exp(x) @ x).tolist()
>>> sorted([(row.name, row.calls, row.flop) for row in p.by_op() if row.flop > 5000])
[('matmul', 1, 524288)]
"""

from tensorken_profile.events import Event
from tensorken_profile.profiling import Profile, profile
from tensorken_profile.tables import Row, Table

__all__ = [
    "Event",
    "Profile",
    "Row",
    "Table",
    "profile",
]
