"""A training task for Tensorken: points within a circle."""
