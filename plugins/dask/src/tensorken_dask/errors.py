"""The error of a cluster that cannot compute."""

from __future__ import annotations

from tensorken_core.errors import TensorkenError


class ClusterError(TensorkenError, ConnectionError):
    """A cluster has no workers, has lost its scheduler, or its workers have other versions.

    >>> issubclass(ClusterError, ConnectionError)
    True
    """
