"""Names of numpy, JAX and PyTorch, and their equivalents here, for errors about unknown names and for docs/names.md."""
