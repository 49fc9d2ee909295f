"""Random programs compared with JAX."""
