"""The selftest: examine backends that are known to be wrong or right."""
