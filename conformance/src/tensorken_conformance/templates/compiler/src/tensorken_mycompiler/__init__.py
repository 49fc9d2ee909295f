"""A compiler for Tensorken: it compiles programs of elementwise ops for the numpy backend."""

from tensorken_mycompiler.compiler import sources

__all__ = ["sources"]
