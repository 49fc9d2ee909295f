"""The JAX backend of Tensorken: arrays of JAX, and programs as computations of XLA."""
