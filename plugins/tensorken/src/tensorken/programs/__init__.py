"""Programs: traced functions as small typed data, which can be read, rewritten, kept and run."""

from tensorken.programs import methods
from tensorken_core.program.program import Equation, Literal, Program, Variable

__all__ = ["Equation", "Literal", "Program", "Variable"]

methods.attach()
