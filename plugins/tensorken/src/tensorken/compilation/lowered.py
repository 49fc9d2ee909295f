"""Lowered: the program of a jitted function for some arguments, for inspection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ParamSpec, Protocol, TypeVar

from tensorken.programs.compiled import Kernels, kernels_of, text_of
from tensorken.programs.passes.pipeline import optimised
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Program

__all__ = ["Jitted", "Lowered"]

P = ParamSpec("P")
R = TypeVar("R", covariant=True)


@dataclass(frozen=True, slots=True, repr=False)
class Lowered:
    """The program of a jitted function for arguments of some shapes and dtypes.

    Attributes:
        program: the traced program.
        backend: the backend that runs it.
    """

    program: Program
    backend: RawTensor[Any]

    def __repr__(self) -> str:
        return f"<lowered {self.program!r} on {self.backend!r}>"

    def as_text(self, form: str = "program") -> str:
        """The program as text.

        Args:
            form: `program` for the listing of the traced program, `python` for a Python function, or a form of the
                compiler: `llvm` or `assembly` of tensorken-llvm.

        Raises:
            ArgumentError: if there is no such form; the message names the forms.

        >>> import tensorken as tk
        >>> print(tk.jit(lambda x: tk.sin(x) * 2.0).lower(tk.ones(3)).as_text())  # doctest: +ELLIPSIS
        <lambda>(x: float32[3]):
            a: float32[3] = sin(x)...
            b: float32[3] = mul(a, 2.0)...
            return b
        """
        return text_of(self.program, self.backend, form)

    @property
    def optimized(self) -> Program:
        """The program after all passes, which the backend compiles.

        >>> import tensorken as tk
        >>> len(tk.jit(lambda x: (tk.exp(x), tk.sin(x))[1]).lower(tk.ones(2)).optimized.equations)
        1
        """
        return optimised(self.program, self.backend)

    def kernels(self) -> Kernels:
        """The kernels of the compiled program: ops, loops, bytes and operations; none if the compiler reports none."""
        kernels = kernels_of(self.program, self.backend)
        return Kernels([]) if kernels is None else kernels


class Jitted(Protocol[P, R]):
    """A jitted function, with the parameters and the result of the function."""

    def __call__(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        """The result, by the compiled program for these arguments."""

    def lower(self, *arguments: P.args, **keywords: P.kwargs) -> Lowered:
        """The program that a call with these arguments would run; nothing runs, and no argument is donated."""
