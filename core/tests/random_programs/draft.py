"""Draft: a program while it is drawn; each step runs at once, so that shapes and dtypes are known to the next."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tensorken as tk
from core.tests.random_programs.numbers import Array, is_python, kind, magnitudes
from core.tests.random_programs.program import Leaf, Program, Step

Shape = tuple[int, ...]

NARROW = ("float32", "float64", "int32", "bool", "float16", "int64")
"""The dtypes of programs that are not wide."""

FLOATS = ("float32", "float64", "float16", "bfloat16")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTS = ("int32", "int64", "int8", "int16", *UNSIGNED)
COMPLEX = ("complex64", "complex128")
DTYPES = (*NARROW, *(name for name in (*FLOATS, *INTS, *COMPLEX) if name not in NARROW))
NUMBERS = (*FLOATS, *INTS)
"""The dtypes whose numbers have an order."""

FIELDS = (*FLOATS, *COMPLEX)
"""The dtypes of numbers that can be divided."""

SMOOTH = ("float64", "complex128")
"""The dtypes of numbers that are differentiated in smooth programs."""

SHAPES: tuple[Shape, ...] = (
    *((3,), (2, 3), (3, 3), (2, 3), (3, 3), (4,), (2, 2, 3), (3, 4), ()),
    *((1,), (3, 1), (1, 3), (2, 1, 3), (0,), (2, 0), (0, 3), (1, 2, 1, 2), (7,), (4, 4)),
)
LARGEST = 96
"""The largest number of elements of a value."""

LARGEST_WHOLE = 1024
"""The largest size of elements in programs of integers."""

SPECIAL = {
    "float16": (0.0, -0.0, np.inf, -np.inf, np.nan, 6e-8, -3e-6, 65504.0, -65504.0, 1.0, 2048.0, 6.1e-5),
    "float32": (
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1e-45,
        -1e-40,
        3.4028235e38,
        -3e38,
        1.0,
        1.1754944e-38,
        1e19,
    ),
    "float64": (
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        5e-324,
        -1e-310,
        1.7976931348623157e308,
        -1e308,
        1.0,
        1e154,
        2.3e-308,
    ),
    "bfloat16": (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -9e-41, 3.3895e38, -3e38, 1.0, 256.0, 1.2e-38),
    "int32": (0, 1, -1, 2**31 - 1, -(2**31), 2, 33, -7),
    "int64": (0, 1, -1, 2**63 - 1, -(2**63), 2**31, -(2**31) - 1, 65),
    "int8": (0, 1, -1, 127, -128, 2, 65, -7),
    "int16": (0, 1, -1, 2**15 - 1, -(2**15), 256, -129, 17),
    "uint8": (0, 1, 2, 255, 128, 127, 9, 65),
    "uint16": (0, 1, 2, 2**16 - 1, 2**15, 256, 17, 2**15 - 1),
    "uint32": (0, 1, 2, 2**32 - 1, 2**31, 2**31 - 1, 65536, 33),
    "uint64": (0, 1, 2, 2**64 - 1, 2**63, 2**63 - 1, 2**32, 65),
}

PARTS = {"complex64": "float32", "complex128": "float64"}
"""The dtypes of the real parts of complex numbers."""


@dataclass(frozen=True)
class Value:
    """A value that steps can use: its name, shape and dtype.

    Attributes:
        name: in the program.
        shape: its shape.
        dtype: the name of its dtype, or `Python int` and the like.
        fine: whether it is finite and of moderate size.
    """

    name: str
    shape: Shape
    dtype: str
    fine: bool

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=int))

    def __str__(self) -> str:
        return self.name


def is_whole(x: Any) -> bool:
    """Whether all elements are small integers, of a dtype in which sums of their products are exact."""
    array = np.asarray(x)
    if kind(array) in "biu":
        return bool((np.abs(array.astype("float64")) <= LARGEST_WHOLE).all())
    return array.dtype == "float64" and bool(
        ((array == np.rint(array)) & (np.abs(array) <= LARGEST_WHOLE)).all()
    )


class Refused(Exception):
    """Tensorken raised an error for a step, which is the last of the program."""


class Draft:
    """A program while it is drawn.

    Args:
        seed: of all that is drawn.
        smooth: draw only float64 and steps with derivatives, with operands from their domains.
        whole: draw small integers, in float64 and other dtypes, and steps whose results are integers.
        wide: draw all dtypes, and Python numbers as arguments.

    Attributes:
        refused: the steps that Tensorken refused, with its errors; only wide programs go on after one.
        error: the error of the last step; None if it has a result.
    """

    def __init__(self, seed: int, smooth: bool, whole: bool = False, wide: bool = False) -> None:
        self.random = random.Random(f"{'wide ' if wide else ''}program {seed}")
        self.smooth = smooth
        self.whole = whole
        self.wide = wide
        self.refused: list[tuple[Step, Exception]] = []
        self.leaves: list[Leaf] = []
        self.steps: list[Step] = []
        self.values: list[Value] = []
        self.found: dict[str, Any] = {}
        self.error: Exception | None = None
        self.bound = 0

    @property
    def program(self) -> Program:
        """The program drawn so far."""
        return Program(tuple(self.leaves), tuple(self.steps), self.smooth, self.whole)

    @property
    def results(self) -> list[Array]:
        """The numbers of all results of steps, by eager evaluation."""
        return [np.asarray(self.found[name]) for step in self.steps for name in step.names]

    def __repr__(self) -> str:
        return f"\n{self.program.script()}\n"

    # ---- decisions -----------------------------------------------------------------------------------------

    def choice(self, options: Sequence[Any]) -> Any:
        """One of these."""
        return options[self.random.randrange(len(options))]

    def chance(self, p: float) -> bool:
        """True with this probability."""
        return self.random.random() < p

    def below(self, n: int) -> int:
        """A number from 0 up to, and without, n."""
        return self.random.randrange(n) if n > 0 else 0

    def axis(self, x: Value, negative: bool = True) -> int:
        """One of the axes of a value that has some."""
        axis = self.below(x.ndim)
        return axis - x.ndim if negative and self.chance(0.4) else axis

    def axes(self, x: Value) -> str:
        """One axis, several, or None, as an argument."""
        if not x.ndim or self.chance(0.25):
            return "None"
        if self.chance(0.6):
            return str(self.axis(x))
        chosen = sorted(self.random.sample(range(x.ndim), self.random.randint(1, x.ndim)))
        return str(tuple(chosen))

    def name(self) -> str:
        """A new name for an argument of a function within an expression."""
        self.bound += 1
        return f"v{self.bound}"

    # ---- values --------------------------------------------------------------------------------------------

    def numbers(self, shape: Shape, dtype: str) -> Array:
        """Numbers for a leaf: of a grid with ties, without ties, or special ones among them."""
        count, rng = int(np.prod(shape, dtype=int)), self.random
        if dtype == "bool":
            return np.array([rng.random() < 0.5 for _ in range(count)], dtype).reshape(shape)
        style = rng.random()
        if self.whole:
            return np.array([rng.randint(-3, 3) for _ in range(count)], dtype).reshape(shape)
        if dtype in COMPLEX:
            return self._complex_numbers(shape, dtype)
        if dtype in INTS:
            small = [rng.randint(0 if dtype in UNSIGNED else -4, 9) for _ in range(count)]
            if style < 0.15:
                small = [rng.choice(SPECIAL[dtype]) for _ in range(count)]
            return np.array(small, dtype).reshape(shape)
        if self.smooth:
            found = [round(rng.uniform(-2.0, 2.0), 3) for _ in range(count)]
            if style < 0.15:  # integers, with zeros and ties
                found = [float(rng.randint(-2, 2)) for _ in range(count)]
            return np.array(found, dtype).reshape(shape)
        if style < 0.35:
            found = [rng.choice((-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0)) for _ in range(count)]
        else:
            found = [round(rng.gauss(0.0, 1.5), 3) for _ in range(count)]
        if style > 0.68:
            found = [rng.choice(SPECIAL[dtype]) if rng.random() < 0.5 else x for x in found]
        with np.errstate(over="ignore"):
            return np.array(found, dtype).reshape(shape)

    def _complex_numbers(self, shape: Shape, dtype: str) -> Array:
        """Numbers of a grid, of a plane, or a few special ones among them."""
        count, rng = int(np.prod(shape, dtype=int)), self.random
        style = rng.random()
        pairs = [[round(rng.gauss(0.0, 1.5), 3) for _ in range(2)] for _ in range(count)]
        if style < 0.3:
            pairs = [[float(rng.randint(-2, 2)) for _ in range(2)] for _ in range(count)]
        if style > 0.9 and not self.smooth:
            special = SPECIAL[PARTS[dtype]]
            pairs = [[rng.choice(special) if rng.random() < 0.3 else x for x in pair] for pair in pairs]
        with np.errstate(over="ignore"):
            found = np.array(pairs, PARTS[dtype]).reshape(count, 2)
        return found.view(dtype).reshape(shape)

    def python_number(self, kinds: str = "ifb") -> str:
        """A Python number that is an argument, or an expression of one: of integers, floats, bools or complex.

        Integers are from 0 to 100, so that they fit each dtype.  Expressions round nothing, in any precision.
        """
        rng, letter = self.random, self.choice(kinds)
        name = {"i": "Python int", "f": "Python float", "b": "Python bool", "c": "Python complex"}[letter]
        found = [x.name for x in self.values if x.dtype == name] if self.chance(0.5) else []
        if found:
            text = str(self.choice(found))
        else:
            options = {
                "i": (0, 1, 2, 3, 5, 7, 100),
                "f": (0.0, 0.1, -1.5, 2.5, 1 / 3, -0.7),
                "b": (True, False),
                "c": (1j, 0.5 - 2j, 1 + 0.1j),
            }[letter]
            text = self._name()
            self.leaves.append(Leaf(text, rng.choice(options)))
            self.found[text] = self.leaves[-1].values
            self.values.append(Value(text, (), name, True))
        if letter in "ifc" and self.chance(0.25):
            other = {"i": "(2 * {0} - {0})", "f": "({0} * 2.0)", "c": "({0} * 2.0)"}[letter]
            return other.format(text)
        return text

    def leaf(self, shape: Shape, dtype: str) -> Value:
        """A new input."""
        leaf = Leaf(self._name(), self.numbers(shape, dtype))
        self.leaves.append(leaf)
        self.found[leaf.name] = tk.tensor(leaf.values)
        return self._noted(leaf.name)

    def _name(self) -> str:
        return f"x{len(self.found)}"

    def _noted(self, name: str) -> Value:
        x = self.found[name]
        fine = bool((magnitudes(np.asarray(x)) < 1e4).all())
        value = Value(name, tuple(x.shape), str(x.dtype), fine)
        self.values.append(value)
        return value

    def dtype(self, options: Sequence[str]) -> str:
        """A dtype, rather one that a recent value has."""
        if self.smooth and "float64" in options:
            return "float64" if len(options) == 1 or self.chance(0.6) else str(self.choice(options))
        seen = [x.dtype for x in self.values[-6:] if x.dtype in options]
        return str(self.choice(seen) if seen and self.chance(0.75) else self.choice(options))

    def pick(
        self,
        dtypes: Sequence[str] = DTYPES,
        fits: Callable[[Value], bool] | None = None,
        shape: Shape | None = None,
        shapes: Sequence[Shape] = SHAPES,
        fine: bool = False,
    ) -> Value:
        """An earlier value that fits, or a new leaf, sometimes rearranged by movement ops.

        Args:
            dtypes: the allowed dtypes.
            fits: a further condition on the value.
            shape: the required shape; None for any.
            shapes: the shapes of new leaves, if no shape is given.
            fine: take only values that are finite and of moderate size.
        """
        if not self.wide:
            dtypes = [name for name in dtypes if name in NARROW]
        if self.smooth:
            dtypes = [name for name in dtypes if name in SMOOTH] or dtypes
        if self.whole:
            rounded = (*(name for name in FLOATS if name != "float64"), *COMPLEX)
            dtypes = [name for name in dtypes if name not in rounded] or dtypes

        def right(x: Value) -> bool:
            if x.dtype not in dtypes or (shape is not None and x.shape != shape) or x.size > LARGEST // 2:
                return False
            if not x.fine and (fine or self.smooth or self.random.random() < 0.6):
                return False
            return fits is None or fits(x)

        found = [x for x in reversed(self.values) if right(x)] if self.chance(0.85) else []
        if found:
            return found[min(self.below(len(found)), self.below(len(found)))]
        while True:
            given = self.choice(shapes) if shape is None else shape
            new = self.leaf(given, self.choice(dtypes) if shape is not None else self.dtype(dtypes))
            if fine and not new.fine:
                continue
            if fits is None or fits(new):
                return self.rearranged(new) if self.chance(0.5) else new

    def rearranged(self, x: Value) -> Value:
        """The value, or one of equal shape computed from it by movement ops: flips, transposes, crops, expands."""
        if not x.ndim:
            return x
        n = x.shape[-1]
        options = [
            f"xp.flip({x}, {self.axis(x)})",
            f"{x}[..., ::-1]",
            f"xp.roll({x}, 1, {self.axis(x)})[::-1]",
        ]
        options.append(f"xp.concatenate([{x}, {x}], -1)[..., {n // 2}:{n // 2 + n}]")
        options.append(f"xp.concatenate([{x}, {x}], -1)[..., ::2]")
        if x.ndim > 1:
            options += [f"xp.reshape({x}, {x.shape[::-1]}).T", f"xp.reshape({x}, {x.shape[::-1]}).T[::-1]"]
        if n and x.ndim < 4:
            options.append(f"xp.broadcast_to({x}[..., :1], {x.shape})")
            options.append(f"xp.broadcast_to({x}[0], {x.shape})" if x.shape[0] else f"{x}[::2]")
        before = len(self.steps)
        self.add("lying", self.choice(options), True)
        return self.values[-1] if len(self.steps) > before and self.values[-1].shape == x.shape else x

    # ---- steps ---------------------------------------------------------------------------------------------

    def add(self, row: str, text: str, exact: bool) -> bool:
        """Run a step and append it to the program, unless its result is too large; returns whether it was appended.

        Raises:
            Refused: if Tensorken raises an error.
        """
        step = Step(row, ("?",), text, exact)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                (result,) = step(tk, self.found)
                results = tuple(result) if isinstance(result, tuple | list) else (result,)
            except Exception as error:  # any exception is compared
                if self.wide and isinstance(error, tk.errors.TensorkenError):
                    self.refused.append((step, error))
                    return False
                self.steps.append(Step(row, (self._name(),), text, exact))
                self.error = error
                raise Refused from error
        if any(map(is_python, results)):
            return False
        if not results or len(results) > 6 or any(x.size > LARGEST or x.ndim > 5 for x in results):
            return False
        if self.whole and not all(map(is_whole, results)):
            return False
        if isinstance(result, list | tuple) and len(results) == 1:
            text = f"{text}[0]"
        names = []
        for x in results:
            names.append(self._name())
            self.found[names[-1]] = x
            self._noted(names[-1])
        self.steps.append(Step(row, tuple(names), text, exact))
        return True
