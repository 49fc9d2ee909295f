"""The laws on lifetimes: what becomes of values and memory before, beside and after a call."""
