"""Stateful: lives of tensors, made, viewed, computed with, dropped and read again, beside a model of whole numbers.

The numbers are so small that every dtype holds them exactly, so what is read must be equal to the model.  A life that
goes wrong is run again with ever fewer actions, as long as it goes wrong.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorken_conformance.case import Failure
from tensorken_conformance.programs.program import NAMES, Array, Leaf, Step
from tensorken_conformance.subject import Subject
from tensorken_core.language.dtypes import DType
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.tensor import Tensor

STEPS = 30
"""How many actions a life has at most."""

LARGEST = 1000
"""No number in a life is larger: float16 holds all whole numbers up to 2048."""

ALIVE = 12
"""How many tensors live at a time at most."""

SHAPES: tuple[Shape, ...] = ((3,), (2, 3), (2, 2), (1,), (4, 1), (2, 3, 2), ())


@dataclass(frozen=True, slots=True)
class Way:
    """A way to make a tensor of one or two others.

    Attributes:
        text: the Python.
        model: the same for numpy arrays.
        fits: for which operands it is defined.
    """

    text: str
    model: Callable[..., Array]
    fits: Callable[..., bool] = lambda *operands: True


def _has_axis(x: Array, *rest: Array) -> bool:
    return bool(x.ndim > 0 and len(x) > 0)


def _alike(a: Array, b: Array) -> bool:
    return bool(a.shape == b.shape)


def _first_set(x: Array) -> Array:
    y = x.copy()
    y[0] = 7
    return y


VIEWS = (
    Way("{0}[1:]", lambda x: x[1:], _has_axis),
    Way("{0}[::-1]", lambda x: x[::-1], _has_axis),
    Way("{0}.T", lambda x: x.T, lambda x: x.ndim == 2),
    Way("{0}.reshape((-1,))", lambda x: x.reshape(-1), _has_axis),
    Way(
        "{0}.broadcast_to((2,) + {0}.shape)",
        lambda x: np.broadcast_to(x, (2, *x.shape)),
        lambda x: x.ndim < 3,
    ),
    Way("{0}[0]", lambda x: x[0], _has_axis),
    Way("{0}[..., ::-1]", lambda x: x[..., ::-1], _has_axis),
    Way("{0}[::2]", lambda x: x[::2], _has_axis),
    Way("{0}.pad(((1, 0),) * {0}.ndim)", lambda x: np.pad(x, ((1, 0),) * x.ndim) if x.ndim else x),
)
"""What a backend may make without copying."""

WAYS = (
    Way("{0} + {1}", lambda a, b: a + b, _alike),
    Way("{0} - {1}", lambda a, b: a - b, _alike),
    Way("{0} * {1}", lambda a, b: a * b, _alike),
    Way("tk.maximum({0}, {1})", np.maximum, _alike),
    Way(
        "tk.concatenate([{0}, {1}], 0)",
        lambda a, b: np.concatenate([a, b]),
        lambda a, b: _alike(a, b) and a.ndim > 0,
    ),
    Way("-{0}", lambda x: -x),
    Way("{0} + 1", lambda x: x + 1),
    Way("{0}.sum(0)", lambda x: x.sum(0), _has_axis),
    Way("{0}.max(0)", lambda x: x.max(0), _has_axis),
    Way("({0} * {1}).sum()", lambda a, b: (a * b).sum(), _alike),
    Way("tk.where({0} > 0, {0}, -{0})", np.abs),
    Way("{0}.at[0].set(7)", _first_set, _has_axis),
)
"""What is computed."""


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that happens in a life.

    Attributes:
        kind: create, step, drop, collect or read.
        name: the number of the tensor that it is about.
        node: what makes it.
        expected: its value.
    """

    kind: str
    name: int = -1
    node: Leaf | Step | None = None
    expected: Array | None = None

    @property
    def line(self) -> str:
        """The Python of it."""
        name = _name(self.name)
        if self.kind == "create":
            return f"{name} = {self.node.text}"  # type: ignore[union-attr]
        if self.kind == "step":
            assert isinstance(self.node, Step)
            return f"{name} = {self.node.text.format(*[_name(i) for i in self.node.operands])}"
        return {"drop": f"del {name}", "collect": "gc.collect()", "read": f"print({name}.tolist())"}[
            self.kind
        ]


def _name(number: int) -> str:
    return NAMES[number] if number < len(NAMES) else f"x{number}"


class Life:
    """Tensors on a backend, by their numbers."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.tensors: dict[int, Tensor] = {}

    def do(self, action: Action) -> str | None:
        """Let an action happen; what is wrong, if anything is."""
        try:
            return self._done(action)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001, whatever a backend raises is a result
            return f"{action.line}: expected a result, got {type(error).__name__}: {' '.join(str(error).split())}"

    def _new(self, leaf: Leaf) -> Tensor:
        """A tensor from a buffer that is overwritten at once, as callers may do."""
        shape, place = leaf.values.shape, self.subject.stack
        buffer: Any = np.array(leaf.values, order="C").reshape(-1)
        x = Tensor(place, place.new(shape, memoryview(buffer), leaf.dtype), shape, leaf.dtype)
        buffer.fill(0)
        return x

    def _done(self, action: Action) -> str | None:
        if action.kind == "create":
            assert isinstance(action.node, Leaf)
            self.tensors[action.name] = self._new(action.node)
        elif action.kind == "step":
            assert isinstance(action.node, Step)
            self.tensors[action.name] = action.node(*[self.tensors[i] for i in action.node.operands])
        elif action.kind == "drop":
            del self.tensors[action.name]
        elif action.kind == "collect":
            gc.collect()
        else:
            got = self.subject.read(self.tensors[action.name])
            expected = np.asarray(action.expected).astype(got.dtype)
            if got.shape != expected.shape or not np.array_equal(got, expected):
                return f"{_name(action.name)}: expected {expected.tolist()}, read {got.tolist()}"
        return None


class _WrongLife(Exception):
    """A life that went wrong: its actions, and what is wrong."""


class _Writer:
    """Draws the actions of a life, lets them happen, and knows what each tensor must hold."""

    def __init__(self, subject: Subject, rng: random.Random) -> None:
        self.life, self.rng = Life(subject), rng
        self.dtypes = [dtype for dtype in subject.dtypes() if dtype.kind != "bool"]
        self.actions: list[Action] = []
        self.model: dict[int, Array] = {}
        self.dtype_of: dict[int, DType] = {}
        self.count = 0

    def write(self) -> None:
        """A life of STEPS steps, after which all tensors are read, twice.

        Raises:
            _WrongLife: if it goes wrong.
        """
        for start in range(3):
            self.create(start=start)
        steps = [self.create, self.view, self.compute, self.twice, self.drop, self.collect, self.read]
        for _ in range(STEPS):
            self.rng.choice(steps)()
        alive = sorted(self.model)
        for number in (*alive, *reversed(alive)):  # reading one may compute it, where another lies
            self._do(Action("read", number, expected=self.model[number]))

    def _do(self, action: Action) -> None:
        self.actions.append(action)
        wrong = self.life.do(action)
        if wrong is not None:
            raise _WrongLife(tuple(self.actions), wrong)

    def _make(self, kind: str, node: Leaf | Step, value: Array, dtype: DType) -> None:
        self.model[self.count], self.dtype_of[self.count] = np.array(value), dtype
        self.count += 1
        self._do(Action(kind, self.count - 1, node))

    def create(
        self, shape: Shape | None = None, dtype: DType | None = None, start: int | None = None
    ) -> None:
        """A tensor of numbers that are given, if there is room for one more."""
        if len(self.model) >= ALIVE:
            return
        shape = self.rng.choice(SHAPES) if shape is None else shape
        dtype = self.rng.choice(self.dtypes) if dtype is None else dtype
        start = self.rng.randrange(7) if start is None else start
        values = ((np.arange(int(np.prod(shape, dtype=int))) * 3 + start) % 11 - 4).reshape(shape)
        self._make("create", Leaf(values.astype(dtype.name), dtype), values, dtype)

    def _step(self, way: Way, first: int | None) -> None:
        if first is None or len(self.model) >= ALIVE:
            return
        x, kind = self.model[first], self.dtype_of[first]
        places: tuple[int, ...] = (first,)
        if "{1}" in way.text:
            mates = [i for i, y in self.model.items() if y.shape == x.shape and self.dtype_of[i] is kind]
            places = (first, self.rng.choice(mates))
        operands = [self.model[i] for i in places]
        if way.fits(*operands):
            value = way.model(*operands)
            if value.size <= 64 and np.abs(value).max(initial=0) <= LARGEST:
                self._make("step", Step(way.text, places, ()), value, kind)

    def _any(self) -> int | None:
        return self.rng.choice(sorted(self.model)) if self.model else None

    def view(self) -> None:
        """A view of a tensor, and as a rule a view of that."""
        self._step(self.rng.choice(VIEWS), self._any())
        self._step(self.rng.choice(VIEWS), max(self.model, default=None))

    def compute(self) -> None:
        """What is computed of a tensor, or of two."""
        self._step(self.rng.choice(WAYS), self._any())

    def twice(self) -> None:
        """Twice the same with other values: the second tensor may stand where the first did."""
        shape, dtype = self.rng.choice(SHAPES), self.rng.choice(self.dtypes)
        way = self.rng.randrange(len(WAYS))
        for start in (way, way + 1):
            first = self.count
            self.create(shape, dtype, start)
            for other in range(6) if self.count > first else ():
                self._step(WAYS[(start + other) % len(WAYS)], self.rng.randrange(first, self.count))
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
        """Collect what was dropped."""
        if self.actions[-1].kind == "drop":
            self._do(Action("collect"))

    def read(self) -> None:
        """Read a tensor."""
        number = self._any()
        if number is not None:
            self._do(Action("read", number, expected=self.model[number]))


def run_lifetimes(subject: Subject, seed: str, lives: int) -> None:
    """Draw lives and compare all that is read with the model.

    Raises:
        Failure: with the shortest life found that goes wrong.
    """
    gc.freeze()  # what was there before has nothing to do with the lives, and takes long to look through
    try:
        for number in range(lives):
            _Writer(subject, random.Random(f"{seed} {number}")).write()
    except _WrongLife as life:
        actions, wrong = _shortened(subject, *life.args)
        raise Failure(wrong, script=_script(subject, actions, wrong)) from None
    finally:
        gc.unfreeze()


def _shortened(subject: Subject, actions: tuple[Action, ...], wrong: str) -> tuple[tuple[Action, ...], str]:
    """The actions without those that are not needed for the last one to go wrong."""
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
    """The actions up to the one that goes wrong, and what does; None if nothing does or they are no life."""
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
