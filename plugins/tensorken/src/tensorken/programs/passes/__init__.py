"""Passes: each pass rewrites a program to an equivalent program; one file per pass."""
