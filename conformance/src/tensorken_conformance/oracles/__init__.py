"""Oracles: right results, known without any backend."""
