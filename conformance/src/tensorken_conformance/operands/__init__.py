"""Operands of laws: shapes, layouts, and numbers at which implementations of ops may fail."""
