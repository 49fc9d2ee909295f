"""Levels, the interpreters above another one: forward and reverse derivatives, batches, and tracing."""
