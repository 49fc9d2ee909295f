"""Layouts: the shapes of operands, and the movement ops that make them."""
