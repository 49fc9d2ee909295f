"""An op for Tensorken: squared distances between points."""

from tensorken_myops.distances import squared_distances

__all__ = ["squared_distances"]
