"""Passes: each makes of a program another of the same meaning; a file each."""
