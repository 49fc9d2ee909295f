"""Levels: interpreters that stand on another one: forward and reverse derivatives, batches, and tracing."""
