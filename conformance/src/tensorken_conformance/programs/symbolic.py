"""Programs for symbolic backends: random programs, and fixed ones with derivatives."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from typing import Any

import tensorken as tk
from tensorken_conformance.programs.program import NAMES, Leaf
from tensorken_conformance.programs.trees import Recorder
from tensorken_conformance.programs.writing import write
from tensorken_conformance.subject import Subject
from tensorken_core.errors import ConcretizationError
from tensorken_core.language.dtypes import DType, float32
from tensorken_core.language.raw import RawTensor
from tensorken_core.tensor.tensor import Tensor

DRAWN = {"smoke": 2, "default": 40, "deep": 400}
"""The number of random programs."""


def symbol(recorder: Recorder, name: str, shape: tuple[int, ...], dtype: DType = float32) -> Tensor:
    """A named tensor."""
    return Tensor(recorder, recorder.named(name, shape, dtype), shape, dtype)


def drawn(recorder: Recorder, seed: str) -> list[Tensor]:
    """The results of a random program whose leaves are symbols.

    A step that needs a value is left out, and so are the steps that use it.
    """
    written = write(random.Random(seed).randrange, recorder.capabilities)
    tensors: dict[int, Tensor] = {}
    for number, node in enumerate(written.nodes):
        if isinstance(node, Leaf):
            tensors[number] = symbol(recorder, NAMES[number], node.values.shape, node.dtype)
        elif all(i in tensors for i in node.operands):
            with contextlib.suppress(ConcretizationError):
                tensors[number] = node(*[tensors[i] for i in node.operands])
    return [tensors[i] for i in written.ends if i in tensors]


def _gradient(f: Callable[..., Any], *shapes: tuple[int, ...]) -> Callable[[Recorder], Tensor]:
    def program(recorder: Recorder) -> Tensor:
        operands = [symbol(recorder, name, shape) for name, shape in zip("xyz", shapes, strict=False)]
        result: Tensor = tk.grad(lambda *xs: f(*xs).sum())(*operands)
        return result

    return program


WRITTEN: dict[str, Callable[[Recorder], Tensor]] = {
    "expression": lambda r: tk.exp(symbol(r, "A", (2, 3))) + tk.log(symbol(r, "B", (2, 3))),
    "product": lambda r: symbol(r, "A", (2, 3)) @ symbol(r, "B", (3, 4)),
    "signs": lambda r: tk.exp(-symbol(r, "A", (2,))) ** -symbol(r, "B", (2,)) - -symbol(r, "A", (2,)),
    "powers": lambda r: (-symbol(r, "A", (2,))) ** symbol(r, "B", (2,)),
    "numbers": lambda r: (symbol(r, "A", (2,)) * -2.5 * -0.0 + float("inf")) / float("nan"),
    "constants": lambda r: (
        symbol(r, "A", (2, 10)) + symbol(r, "A", (2, 10)).constant(range(10), float32, (10,))
    ),
    "several-results": lambda r: tk.linalg.qr(symbol(r, "A", (3, 3)))[1],
    "gradient": _gradient(lambda x, y: tk.tanh(x @ y), (2, 3), (3, 2)),
    "second-gradient": _gradient(lambda x: tk.grad(lambda v: (v * tk.sin(v)).sum())(x), (3,)),
    "batch": lambda r: tk.vmap(lambda row: tk.softmax(row) * row)(symbol(r, "A", (2, 3))),
}
"""Programs that a user might write."""


def text_of(interpreter: RawTensor[Any], x: Tensor) -> str:
    """The text of a symbolic backend for a value on its recorder."""
    expression, _ = x.representation
    return str(Tensor(interpreter, expression))


def results_of(subject: Subject, name: str) -> list[Tensor]:
    """The results of a written program, or of the random one with a number, on a recorder."""
    recorder = Recorder(subject.call_counter)
    if name in WRITTEN:
        return [WRITTEN[name](recorder)]
    return drawn(recorder, f"{subject.seed} {name}")


PROGRAMS = ("gradient", "second-gradient", "batch", "drawn-0", "drawn-1", "drawn-2")
"""The programs whose texts are compared between processes."""


def program_text(subject: Subject, name: str) -> str:
    """The text of the backend for a program."""
    return "; ".join([text_of(subject.call_counter, y) for y in results_of(subject, name)])


def texts(subject: Subject) -> dict[str, str]:
    """The texts of the backend for PROGRAMS."""
    return {name: program_text(subject, name) for name in PROGRAMS}
