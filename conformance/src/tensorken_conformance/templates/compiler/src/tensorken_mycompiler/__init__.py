"""An example of a plugin, which compiles programs of elementwise ops for the numpy backend."""

from tensorken_example_compiler.compiler import sources

__all__ = ["sources"]
