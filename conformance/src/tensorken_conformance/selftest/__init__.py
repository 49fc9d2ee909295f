"""The selftest: what the kit finds when it examines backends that are known to be wrong, or right."""
