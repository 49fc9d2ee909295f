"""Stateful: make, view, compute with, drop and read tensors in random order, and compare them with numpy arrays.

The numbers are small integers, which the dtypes of a life hold exactly, so each read must equal the model. A life is a
sequence of actions; a failing one is shortened.
"""

from __future__ import annotations

import gc
import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorken_conformance.case import Failure
from tensorken_conformance.numbers.host_arrays import flat_buffer
from tensorken_conformance.programs.program import Array, Expression, Leaf, Step, name_of
from tensorken_conformance.subject import Subject
from tensorken_core.language.dtypes import DType
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.tensor import Tensor

STEPS = 30
"""The largest number of actions of a life."""

LARGEST = 1000
"""The largest number in a life; float16 holds all integers up to 2048."""

DTYPES_OF_LIVES = ("int32", "int64", "float16", "float32", "float64")
"""The dtypes of a life: they have all its numbers, and are few, so that tensors meet others of their dtype."""

ALIVE = 12
"""The largest number of tensors at a time."""

SHAPES: tuple[Shape, ...] = ((3,), (2, 3), (2, 2), (1,), (4, 1), (2, 3, 2), ())

SMOKE = ((2, 3),)
"""The shapes of the smoke run; its tensors have one dtype."""


def _has_axis(x: Array, *rest: Array) -> bool:
    return bool(x.ndim > 0 and len(x) > 0)


def _alike(a: Array, b: Array) -> bool:
    return bool(a.shape == b.shape)


def _first_set(x: Array) -> Array:
    y = x.copy()
    y[0] = 7
    return y


VIEWS = (
    Expression("{0}[1:]", fits=_has_axis),
    Expression("{0}[::-1]", fits=_has_axis),
    Expression("{0}.T", fits=lambda x: x.ndim == 2),
    Expression("{0}.reshape((-1,))", fits=_has_axis),
    Expression("tk.broadcast_to({0}, (2,) + {0}.shape)", fits=lambda x: x.ndim < 3),
    Expression("{0}[0]", fits=_has_axis),
    Expression("{0}[..., ::-1]", fits=_has_axis),
    Expression("{0}[::2]", fits=_has_axis),
    Expression("{0}.pad(((1, 0),) * {0}.ndim)", lambda x: np.pad(x, ((1, 0),) * x.ndim) if x.ndim else x),
)
"""Expressions that a backend may evaluate without copying."""

COMPUTATIONS = (
    Expression("{0} + {1}", fits=_alike),
    Expression("{0} - {1}", fits=_alike),
    Expression("{0} * {1}", fits=_alike),
    Expression("tk.maximum({0}, {1})", fits=_alike),
    Expression("tk.concatenate([{0}, {1}], 0)", fits=lambda a, b: _alike(a, b) and a.ndim > 0),
    Expression("-{0}"),
    Expression("{0} + 1"),
    Expression("{0}.sum(0)", fits=_has_axis),
    Expression("{0}.max(0)", fits=_has_axis),
    Expression("({0} * {1}).sum()", fits=_alike),
    Expression("tk.where({0} > 0, {0}, -{0})"),
    Expression("{0}.at[0].set(7)", _first_set, _has_axis),
)
"""Expressions that compute."""


@dataclass(frozen=True, slots=True)
class Action:
    """One action of a life.

    Attributes:
        kind: make, drop, collect or read.
        name: the number of its tensor.
        node: the leaf or the step of a tensor that is made.
        expected: the value of a tensor that is read.
    """

    kind: str
    name: int = -1
    node: Leaf | Step | None = None
    expected: Array | None = None

    @property
    def line(self) -> str:
        """The Python of the action."""
        name = name_of(self.name)
        if isinstance(self.node, Leaf):
            return f"{name} = {self.node.text}"
        if isinstance(self.node, Step):
            return f"{name} = {self.node.text.format(*map(name_of, self.node.operands))}"
        lines = {"drop": f"del {name}", "collect": "gc.collect()", "read": f"print({name}.tolist())"}
        return lines[self.kind]


class Life:
    """Tensors on a backend, by their numbers."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.tensors: dict[int, Tensor] = {}

    def do(self, action: Action) -> str | None:
        """Do an action; returns the error, if any."""
        try:
            return self._done(action)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001, whatever a backend raises is a result
            return f"{action.line}: expected a result, got {type(error).__name__}: {' '.join(str(error).split())}"

    def _new(self, leaf: Leaf) -> Tensor:
        """A tensor from a buffer that is overwritten at once, as callers may overwrite it."""
        shape, interpreter = leaf.values.shape, self.subject.stack
        buffer: Any = np.array(leaf.values, order="C").reshape(-1)
        x = Tensor(interpreter, interpreter.new(shape, flat_buffer(buffer), leaf.dtype), shape, leaf.dtype)
        buffer.fill(0)
        return x

    def _done(self, action: Action) -> str | None:
        if isinstance(action.node, Leaf):
            self.tensors[action.name] = self._new(action.node)
        elif isinstance(action.node, Step):
            self.tensors[action.name] = action.node(*[self.tensors[i] for i in action.node.operands])
        elif action.kind == "drop":
            del self.tensors[action.name]
        elif action.kind == "collect":
            gc.collect()
        else:
            got = self.subject.read(self.tensors[action.name])
            expected = np.asarray(action.expected).astype(got.dtype)
            if got.shape != expected.shape or not np.array_equal(got, expected):
                return f"{name_of(action.name)}: expected {expected.tolist()}, read {got.tolist()}"
        return None


class _WrongLife(Exception):
    """A life that failed: its actions, and the error."""


class _Writer:
    """Draws and runs the actions of a life; `model` has the expected value of each tensor."""

    def __init__(self, subject: Subject, rng: random.Random) -> None:
        self.life, self.rng = Life(subject), rng
        self.dtypes = subject.sampled([dtype for dtype in subject.dtypes() if dtype.name in DTYPES_OF_LIVES])
        self.shapes = SMOKE if subject.depth == "smoke" else SHAPES
        self.actions: list[Action] = []
        self.model: dict[int, Array] = {}
        self.dtype_of: dict[int, DType] = {}
        self.count = 0

    def write(self) -> None:
        """Do STEPS random actions, then read all tensors twice.

        Raises:
            _WrongLife: if an action fails.
        """
        for start in range(3):
            self.create(start=start)
        steps = [self.create, self.view, self.compute, self.twice, self.drop, self.collect, self.read]
        for _ in range(STEPS):
            self.rng.choice(steps)()
        alive = sorted(self.model)
        for number in (*alive, *reversed(alive)):  # a read may compute the tensor in memory of another
            self._do(Action("read", number, expected=self.model[number]))

    def _do(self, action: Action) -> None:
        self.actions.append(action)
        wrong = self.life.do(action)
        if wrong is not None:
            raise _WrongLife(tuple(self.actions), wrong)

    def _make(self, node: Leaf | Step, value: Array, dtype: DType) -> None:
        self.model[self.count], self.dtype_of[self.count] = np.array(value), dtype
        self.count += 1
        self._do(Action("make", self.count - 1, node))

    def create(
        self, shape: Shape | None = None, dtype: DType | None = None, start: int | None = None
    ) -> None:
        """Make a tensor of given numbers, unless there are too many tensors."""
        if len(self.model) >= ALIVE:
            return
        shape = self.rng.choice(self.shapes) if shape is None else shape
        dtype = self.rng.choice(self.dtypes) if dtype is None else dtype
        start = self.rng.randrange(7) if start is None else start
        values = ((np.arange(int(np.prod(shape, dtype=int))) * 3 + start) % 11 - 4).reshape(shape)
        self._make(Leaf(values.astype(dtype.name), dtype), values, dtype)

    def _step(self, way: Expression, first: int | None) -> None:
        if first is None or len(self.model) >= ALIVE:
            return
        x, kind = self.model[first], self.dtype_of[first]
        places: tuple[int, ...] = (first,)
        if way.arity == 2:
            mates = [i for i, y in self.model.items() if y.shape == x.shape and self.dtype_of[i] is kind]
            places = (first, self.rng.choice(mates))
        operands = [self.model[i] for i in places]
        if way.fits(*operands):
            value = way.value(*operands)
            if value.size <= 64 and np.abs(value).max(initial=0) <= LARGEST:
                self._make(way.at(places), value, kind)

    def _any(self) -> int | None:
        return self.rng.choice(sorted(self.model)) if self.model else None

    def view(self) -> None:
        """Make a view of a tensor, and a view of the newest tensor."""
        self._step(self.rng.choice(VIEWS), self._any())
        self._step(self.rng.choice(VIEWS), max(self.model, default=None))

    def compute(self) -> None:
        """Compute with a tensor, or with two."""
        self._step(self.rng.choice(COMPUTATIONS), self._any())

    def twice(self) -> None:
        """Do the same actions twice, with other values: the second tensor may reuse the memory of the first."""
        shape, dtype = self.rng.choice(self.shapes), self.rng.choice(self.dtypes)
        way = self.rng.randrange(len(COMPUTATIONS))
        for start in (way, way + 1):
            first = self.count
            self.create(shape, dtype, start)
            for other in range(6) if self.count > first else ():
                self._step(
                    COMPUTATIONS[(start + other) % len(COMPUTATIONS)], self.rng.randrange(first, self.count)
                )
            for number in reversed(range(first, self.count)):
                self._do(Action("read", number, expected=self.model.pop(number)))
                self._do(Action("drop", number))

    def drop(self) -> None:
        """Drop a tensor."""
        number = self._any()
        if number is not None:
            del self.model[number]
            self._do(Action("drop", number))

    def collect(self) -> None:
        """Collect garbage after a drop."""
        if self.actions[-1].kind == "drop":
            self._do(Action("collect"))

    def read(self) -> None:
        """Read a tensor."""
        number = self._any()
        if number is not None:
            self._do(Action("read", number, expected=self.model[number]))


def run_lifetimes(subject: Subject, seed: str, lives: int) -> None:
    """Draw lives and compare every read with the model.

    Raises:
        Failure: if a life fails; its script is a short life that fails.
    """
    gc.freeze()  # so that collections skip all older objects
    try:
        for number in range(lives):
            _Writer(subject, random.Random(f"{seed} {number}")).write()
    except _WrongLife as life:
        actions, wrong = _shortened(subject, *life.args)
        raise Failure(wrong, script=_script(subject, actions, wrong)) from None
    finally:
        gc.unfreeze()


def _shortened(subject: Subject, actions: tuple[Action, ...], wrong: str) -> tuple[tuple[Action, ...], str]:
    """The actions without those that the failure does not need."""
    again = _replayed(subject, actions)
    if again is None:
        return actions, wrong
    best, wrong = again
    i = len(best) - 2
    while i >= 0:
        found = _replayed(subject, (*best[:i], *best[i + 1 :]))
        if found is not None:
            best, wrong = found
            i = min(i, len(best) - 1)
        i -= 1
    return best, wrong


def _replayed(subject: Subject, actions: tuple[Action, ...]) -> tuple[tuple[Action, ...], str] | None:
    """The actions up to the one that fails, and the error; None if none fails or an action lacks its tensors."""
    life = Life(subject)
    for number, action in enumerate(actions):
        needed = action.node.operands if isinstance(action.node, Step) else ()
        if action.kind in ("drop", "read"):
            needed = (action.name,)
        if any(i not in life.tensors for i in needed):
            return None
        wrong = life.do(action)
        if wrong is not None:
            return actions[: number + 1], wrong
    return None


def _script(subject: Subject, actions: tuple[Action, ...], wrong: str) -> list[str]:
    lines = [action.line for action in actions]
    imports = "import tensorken as tk" + ("; import gc" if "gc.collect()" in lines else "")
    parts = [imports, f"tk.use_backend({subject.name!r})", "; ".join(lines[:-1]), f"{lines[-1]}  # {wrong}"]
    return [part for part in parts if part]
