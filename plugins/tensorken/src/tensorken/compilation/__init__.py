"""Compilation: `jit` traces a function once and runs it as a compiled program."""
