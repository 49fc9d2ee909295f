"""Operands of laws: shapes, layouts, and numbers at which ops may go wrong."""
