"""Passes: each rewrites a program to an equivalent one; one file per pass."""
