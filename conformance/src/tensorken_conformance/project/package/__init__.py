"""The mine backend of Tensorken."""
