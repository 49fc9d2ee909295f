"""Wrapper: the base class of interpreters over a backend that change its representation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorken_core.language.interpreter import R
from tensorken_core.language.op import Op
from tensorken_core.language.raw import RawTensor

WriteCall = Callable[[Sequence[str]], Sequence[str] | None]
"""Writes a call of a compiled program into a function that is generated, from expressions for the inputs to those for
the outputs; None if the call cannot be written."""


class DonatableArgs(list[Any]):
    """The arguments of one run; the callee may pop donated ones and so drop the last reference to their memory."""


class Wrapper(RawTensor[R]):
    """An interpreter whose representations wrap representations of another backend; it is not a level."""

    def __init__(self, raw: RawTensor[Any]) -> None:
        self.raw = raw
        self.capabilities = raw.capabilities

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.raw!r})"

    def wrap(self, value: Any) -> R:
        """This interpreter's representation of a value of the wrapped backend."""
        raise NotImplementedError(f"{type(self).__name__} must define wrap(value)")

    def value(self, x: R) -> Any:
        """The wrapped backend's value, with all deferred ops computed."""
        raise NotImplementedError(f"{type(self).__name__} must define value(x)")

    def compile_below(self, compiled: Callable[[Any, RawTensor[Any]], Any], program: Any) -> Any:
        """The program compiled by `compiled(program, backend)`, as a function of representations of this interpreter;
        None if it cannot be compiled.
        """
        run = compiled(program, self.raw)
        return None if run is None else self.wrap_program(run, program)

    def wrap_program(self, run: Callable[[Sequence[Any]], Sequence[Any]], program: Any) -> Any:
        """A compiled program of the wrapped backend, as a function of representations of this interpreter.

        Args:
            run: the compiled program, a function from and to values of the wrapped backend.
            program: the program.  The results may take the memory of its donated inputs, if the arguments are
                `DonatableArgs`.
        """
        return lambda xs: [self.wrap(y) for y in run([self.value(x) for x in xs])]

    def adopt(self, array: Any, copy: bool) -> R | None:
        value = self.raw.adopt(array, copy)
        return None if value is None else self.wrap(value)

    def export(self, x: R) -> Any:
        return self.raw.export(self.value(x))

    def placement(self, x: R) -> Any:
        return self.raw.placement(self.value(x))

    def write_call(
        self, code: Any, program: Any, xs: Sequence[str], write: WriteCall
    ) -> Sequence[str] | None:
        """Write statements that do what the function of `wrap_program` does, for a program without donated inputs.

        Args:
            code: the generated function: `lines`, `constant(object)` and `variables(count)`.
            program: the program.
            xs: expressions for this interpreter's representations of the inputs.
            write: writes the call of the compiled program, whose inputs may have size 1 along repeated axes.

        Returns:
            Expressions for the outputs; None if the call cannot be written.
        """
        return None

    def write_values(self, code: Any, xs: Sequence[str]) -> list[str]:
        """Write statements for the wrapped backend's values of representations whose `value` is None until computed."""
        values: list[str] = code.variables(len(xs))
        value = code.constant(self.value)
        for x, v in zip(xs, values, strict=True):
            code.lines += [f"{v} = {x}.value", f"if {v} is None: {v} = {value}({x})"]
        return values

    def ravel(self, x: R) -> Any:
        return self.raw.ravel(self.value(x))

    def has(self, op: Op) -> bool:
        return self.raw.has(op)
