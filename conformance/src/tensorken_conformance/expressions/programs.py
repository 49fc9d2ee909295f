"""Programs for symbolic backends: drawn ones of a few ops, and derivatives of written ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import tensorken as tk
from tensorken_conformance.expressions.trees import Recorder
from tensorken_conformance.operands.sampled import methods
from tensorken_conformance.subject import Subject
from tensorken_core.errors import TensorkenError
from tensorken_core.language.dtypes import DTYPES, DType, bool_, float32
from tensorken_core.language.raw import RawTensor
from tensorken_core.tensor.dispatch import apply
from tensorken_core.tensor.tensor import Tensor

DRAWN = {"smoke": 2, "default": 40, "deep": 400}
"""How many programs are drawn."""

LENGTH = 12
"""How many ops a drawn program has."""

Program = Callable[[Recorder], Tensor]


def symbol(recorder: Recorder, name: str, shape: tuple[int, ...], dtype: DType = float32) -> Tensor:
    """A named tensor."""
    return Tensor(recorder, recorder.named(name, shape, dtype), shape, dtype)


def drawn(seed: str) -> Program:
    """A program of ops on each other's results: operands are those values that have a shape and a dtype that fit."""

    def program(recorder: Recorder) -> Tensor:
        rng = random.Random(seed)
        pool = [
            symbol(recorder, "a", (2, 3)),
            symbol(recorder, "b", (2, 3)),
            symbol(recorder, "c", (2, 3), bool_),
            symbol(recorder, "n", (2, 3), DTYPES["int32"]),
        ]
        pool.append(pool[0] * -2.5)
        ops = [op for op in methods() if op.elementwise]
        moves: list[Callable[[Tensor], Tensor]] = [
            lambda x: x.permute(tuple(reversed(range(x.ndim)))),
            lambda x: x.flip(0),
            lambda x: x.reshape(x.size),
            lambda x: x.pad(((1, 0),) * x.ndim),
            lambda x: x.crop(((0, 1),) * x.ndim),
            lambda x: x.sum(0, keepdims=True),
            lambda x: x.max(-1, keepdims=True),
            lambda x: tk.concatenate([x, x], axis=0),
            lambda x: -x,
            lambda x: x + rng.choice([2, -3, 0]),
            lambda x: x.astype(rng.choice(["float32", "int32", "bool"])),
            lambda x: x.sort(axis=0),
            lambda x: tk.take(x, [0, 0], axis=0),
        ]
        while len(pool) < LENGTH + 5:
            x = rng.choice(pool[-6:])
            try:
                if rng.random() < 0.4:
                    pool.append(rng.choice(moves)(x))
                    continue
                op = rng.choice(ops)
                others = [y for y in pool if y.shape == x.shape]
                operands = [x, *(rng.choice(others) for _ in range((op.arity or 1) - 1))]
                if op.name == "where":
                    operands = [rng.choice([y for y in others if y.dtype is bool_] or [x]), *operands[:2]]
                pool.append(apply(op, operands))
            except TensorkenError:  # this op is not for these
                continue
        return pool[-1]

    return program


def _gradient(f: Callable[..., Any], *shapes: tuple[int, ...]) -> Program:
    def program(recorder: Recorder) -> Tensor:
        operands = [symbol(recorder, name, shape) for name, shape in zip("xyz", shapes, strict=False)]
        result: Tensor = tk.grad(lambda *xs: f(*xs).sum())(*operands)
        return result

    return program


WRITTEN: dict[str, Program] = {
    "expression": lambda r: tk.exp(symbol(r, "A", (2, 3))) + tk.log(symbol(r, "B", (2, 3))),
    "product": lambda r: symbol(r, "A", (2, 3)) @ symbol(r, "B", (3, 4)),
    "signs": lambda r: tk.exp(-symbol(r, "A", (2,))) ** -symbol(r, "B", (2,)) - -symbol(r, "A", (2,)),
    "powers": lambda r: (-symbol(r, "A", (2,))) ** symbol(r, "B", (2,)),
    "numbers": lambda r: (symbol(r, "A", (2,)) * -0.0 + float("inf")) / float("nan"),
    "constants": lambda r: (
        symbol(r, "A", (2, 10)) + symbol(r, "A", (2, 10)).constant(range(10), float32, (10,))
    ),
    "several-results": lambda r: tk.linalg.qr(symbol(r, "A", (3, 3)))[1],
    "gradient": _gradient(lambda x, y: tk.tanh(x @ y), (2, 3), (3, 2)),
    "second-gradient": _gradient(lambda x: tk.grad(lambda v: (v * tk.sin(v)).sum())(x), (3,)),
    "batch": lambda r: tk.vmap(lambda row: tk.softmax(row) * row)(symbol(r, "A", (2, 3))),
}
"""Programs that a user might write."""


def text_of(place: RawTensor[Any], x: Tensor) -> str:
    """What a symbolic backend says of a value that was made on its recorder."""
    expression, _ = x.representation
    return str(Tensor(place, expression))


def named(name: str, seed: int) -> Program:
    """The program of a name, which is a written one or the number of a drawn one."""
    return WRITTEN[name] if name in WRITTEN else drawn(f"{seed} {name}")


PROGRAMS = ("gradient", "second-gradient", "batch", "drawn-0", "drawn-1", "drawn-2")
"""Those whose texts are compared with themselves."""


def program_text(subject: Subject, name: str) -> str:
    """A program as the backend says it."""
    return text_of(subject.call_counter, named(name, subject.seed)(Recorder(subject.call_counter)))


def texts(subject: Subject) -> dict[str, str]:
    """These programs as the backend says them."""
    return {name: program_text(subject, name) for name in PROGRAMS}
