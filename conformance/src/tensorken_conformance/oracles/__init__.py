"""Oracles: correct results, computed without any backend."""
