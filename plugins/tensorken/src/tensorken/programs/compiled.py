"""Compiled programs: the texts and kernels of a program that its compiler reports.

The function that a compiler returns may have the two methods of `Shown`; a compiler need not have them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from tensorken.programs.execution import compiled_function, compiled_functions
from tensorken_core.errors import ArgumentError
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Program


@dataclass(frozen=True, slots=True)
class Kernel:
    """A unit of a compiled program: a loop nest, or a call of a library or of the backend.

    Attributes:
        name: `kernel`, or the name of the called function or library, such as `sgemm` or `numpy`.
        ops: the ops that the kernel computes, in order.
        loops: the numbers of iterations of nested loops, the outermost first.
        bytes_read: the size of the values that the kernel reads from memory.
        bytes_written: the size of the values that the kernel writes to memory.
        flop: the number of operations on elements, by `tensorken.programs.costs`.
    """

    name: str
    ops: tuple[str, ...]
    loops: tuple[int, ...]
    bytes_read: int
    bytes_written: int
    flop: int


class Kernels(Sequence[Kernel]):
    """Kernels in the order in which they run; `str` formats them as a table.

    >>> print(Kernels([Kernel("kernel", ("mul", "sum"), (100, 30), 12000, 400, 6000)]))
    kernel  ops      loops      read  written  FLOP
    kernel  mul sum  100 x 30  12000      400  6000
    """

    def __init__(self, kernels: Iterable[Kernel]) -> None:
        self._kernels = tuple(kernels)

    def __getitem__(self, index: Any) -> Any:
        return self._kernels[index]

    def __len__(self) -> int:
        return len(self._kernels)

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [("kernel", "ops", "loops", "read", "written", "FLOP")]
        for x in self._kernels:
            loops = " x ".join(map(str, x.loops)) or "-"
            rows.append((x.name, _ops(x.ops), loops, *map(str, (x.bytes_read, x.bytes_written, x.flop))))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            [
                "  ".join([*map(str.ljust, row[:3], widths[:3]), *map(str.rjust, row[3:], widths[3:])])
                for row in rows
            ]
        )

    __repr__ = __str__


MAX_OPS = 8
"""The largest number of ops that a row of a table names."""


def _ops(names: Sequence[str]) -> str:
    rest = len(names) - MAX_OPS
    return " ".join(names) if rest <= 0 else f"{' '.join(names[:MAX_OPS])} and {rest} more"


@runtime_checkable
class Shown(Protocol):
    """A compiled program that reports its texts and kernels."""

    def texts(self) -> Mapping[str, Callable[[], str]]:
        """A function that makes the text, for each form of text by name."""

    def kernels(self) -> Sequence[Kernel]:
        """The kernels and calls, in the order in which they run."""


def kernels_of(program: Program, backend: RawTensor[Any] | None = None) -> Kernels | None:
    """The kernels of a compiled program; None if its compiler does not report them.

    Args:
        program: the program.
        backend: compiles the program if needed; None: the kernels of any earlier compilation.
    """
    runs: list[Any] = [*compiled_functions(program)]
    if backend is not None:
        runs = [compiled_function(program, backend)]
    return next((Kernels(run.kernels()) for run in runs if isinstance(run, Shown)), None)


def text_of(program: Program, backend: RawTensor[Any], form: str) -> str:
    """The text of a program in a form: `program`, `python`, or a form of the compiler.

    Raises:
        ArgumentError: if there is no such form.
    """
    forms: dict[str, Callable[[], str]] = {"program": lambda: str(program), "python": program.to_python}
    if form in forms:
        return forms[form]()
    run: Any = compiled_function(program, backend)
    texts: Mapping[str, Callable[[], str]] = run.texts() if isinstance(run, Shown) else {}
    if form not in texts:
        names = ", ".join([*forms, *texts])
        note = "no compiler shows its code" if not texts else "the compiler's are among them"
        raise ArgumentError(
            f"as_text: {form!r} is no form of {program.name!r} on {backend!r}; its forms are {names} ({note})"
        )
    return texts[form]()
