"""Gradients of sharded data on the workers of a dask cluster, which may lose workers.

Each worker loads its shards itself, and computes with any backend.  Parameters are arguments of tasks, and loaded
shards are results of tasks, so dask computes again whatever a dead worker had.  Results are combined in the order of
the shards: they have the same bits whichever worker computed what, and as in one process (`InProcess`).

>>> import tensorken as tk
>>> shards = InProcess(lambda i: tk.tensor([1.0 + i, 2.0 + i]), 2)  # on a cluster: Shards(client, load, 2)
>>> step = value_and_grad(lambda w, x: ((w - x) ** 2).sum(), shards)
>>> value, gradient = step(tk.tensor(0.0))
>>> value.item(), gradient.item()
(18.0, -16.0)
"""

from tensorken_dask.cluster import connect, dashboard_link, wait_for_workers
from tensorken_dask.errors import ClusterError
from tensorken_dask.gradients import local_steps, value_and_grad
from tensorken_dask.in_process import InProcess
from tensorken_dask.reductions import map_reduce
from tensorken_dask.shards import Shards

__all__ = [
    "ClusterError",
    "InProcess",
    "Shards",
    "connect",
    "dashboard_link",
    "local_steps",
    "map_reduce",
    "value_and_grad",
    "wait_for_workers",
]
