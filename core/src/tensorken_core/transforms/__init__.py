"""Transforms: functions of functions, each of which runs its function at a fresh level."""
