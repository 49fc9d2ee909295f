"""Programs: traced functions as typed equations, which can be printed, rewritten, saved and run."""

from tensorken.programs import methods
from tensorken_core.program.program import Equation, Literal, Program, Variable

__all__ = ["Equation", "Literal", "Program", "Variable"]

methods.attach()
