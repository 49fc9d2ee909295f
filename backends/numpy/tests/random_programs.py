"""Random programs over arrays, with every kind of equation that the numpy backend compiles specially."""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np

from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS
from tensorken_core.program.program import Equation, Literal, Program, Variable

UNARY = (
    "neg",
    "abs",
    "exp",
    "tanh",
    "sigmoid",
    "square",
    "sech_squared",
    "softplus",
    "relu",
    "erf",
    "sign",
    "sqrt",
)
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum", "pow")
INTEGER_UNARY = ("neg", "abs", "square", "sign")
INTEGER_BINARY = ("add", "sub", "mul", "maximum", "minimum", "bitwise_xor")


class ProgramGenerator:
    """Draws equations on the values so far."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.dtype = DTYPES[
            str(self.rng.choice(["float32", "float64", "float16", "int32"], p=[0.5, 0.2, 0.1, 0.2]))
        ]
        rank = int(self.rng.integers(0, 4))
        self.shape = tuple(
            [int(n) for n in self.rng.choice([1, 2, 3, 4, 5, 0], rank, p=[0.15, 0.2, 0.25, 0.2, 0.17, 0.03])]
        )
        self.equations: list[Equation] = []
        self.values: list[Variable] = []

    def pick(self, items: Any) -> Any:
        return items[int(self.rng.integers(len(items)))]

    def add(self, name: str, operands: Any, *params: Any) -> Variable:
        op = OPS[name]
        shape = op.shape(*[v.shape for v in operands], *params)
        dtype = op.dtype(*[v.dtype for v in operands], *params)
        result = Variable(shape, dtype)
        self.equations.append(Equation(op, tuple(operands), params, (result,)))
        self.values.append(result)
        return result

    def like(self, x: Variable) -> Variable:
        """Another value of this shape and dtype: an existing one, a literal, or an expanded one."""
        found = [v for v in self.values if v.shape == x.shape and v.dtype is x.dtype]
        choice = self.rng.random()
        if choice < 0.2:
            return Literal(
                x.shape,
                x.dtype,
                self.pick([0, 1, 2, -3] if x.dtype.kind == "int" else [0.0, 0.5, 2.0, -1.5]),
            )
        small = [
            v
            for v in self.values
            if v.dtype is x.dtype
            and len(v.shape) == len(x.shape)
            and all([n in (1, m) for n, m in zip(v.shape, x.shape, strict=True)])
        ]
        if choice < 0.5 and small:
            return self.add("expand", [self.pick(small)], x.shape)
        return self.pick(found)

    def step(self) -> None:
        full = [v for v in self.values if v.dtype is self.dtype and v.shape == self.shape]
        recent = [v for v in self.values if v.dtype is self.dtype]
        x = self.pick(full) if self.rng.random() < 0.5 else self.pick(recent[-4:])
        rank, integer = len(x.shape), self.dtype.kind == "int"
        axes = tuple([i for i in range(rank) if self.rng.random() < 0.5])
        choice = self.pick(
            [
                "one",
                "two",
                "two",
                "two",
                "where",
                "sum",
                "max",
                "movement",
                "movement",
                "contraction",
                "rows",
                "other",
            ]
        )
        if choice == "one":
            self.add(self.pick(INTEGER_UNARY if integer else UNARY), [x])
        elif choice == "two":
            self.add(self.pick(INTEGER_BINARY if integer else BINARY), [x, self.like(x)])
        elif choice == "where":
            self.add("where", [self.add("lt", [x, self.like(x)]), x, self.like(x)])
        elif choice == "sum":
            self.add(self.pick(["sum", "sum", "prod"]), [x], axes)
        elif choice == "max":
            if not any([x.shape[i] == 0 for i in axes]):
                self.add(self.pick(["max", "min"]), [x], axes)
        elif choice == "contraction":
            small = tuple([1 if self.rng.random() < 0.3 else n for n in x.shape])
            other = Variable(small, self.dtype)
            found = [v for v in recent if v.shape == other.shape]
            if found:
                self.add("fused_multiply_add", [x, self.pick(found)], axes)
            else:
                self.add("fused_multiply_add", [x, self.like(x)], axes)
        elif choice == "rows" and not integer and rank:
            self.add(self.pick(["softmax", "log_softmax"]), [x], axes or (rank - 1,))
        elif choice == "movement":
            self.move(x, axes)
        elif rank:
            self.other(x)

    def move(self, x: Variable, axes: Any) -> None:
        rank = len(x.shape)
        choice = self.pick(["reshape", "permute", "flip", "crop", "pad", "units"])
        if choice == "reshape":
            self.add("reshape", [x], (math.prod(x.shape),))
        elif choice == "units":
            axis = int(self.rng.integers(rank + 1))
            self.add("reshape", [x], (*x.shape[:axis], 1, *x.shape[axis:]))
        elif choice == "permute":
            self.add("permute", [x], tuple([int(i) for i in self.rng.permutation(rank)]))
        elif choice == "flip":
            self.add("flip", [x], axes)
        elif choice == "crop":
            limits = [sorted([int(i) for i in self.rng.integers(0, n + 1, 2)]) for n in x.shape]
            self.add("crop", [x], tuple([(a, b) for a, b in limits]))
        else:
            self.add("pad", [x], tuple([(int(a), int(b)) for a, b in self.rng.integers(0, 3, (rank, 2))]))

    def other(self, x: Variable) -> None:
        axis = int(self.rng.integers(len(x.shape)))
        choice = self.pick(["concatenate", "gather", "cumsum", "sort", "argsort", "scatter_add", "cast"])
        if choice == "concatenate":
            self.add("concatenate", [x, self.like(x)], axis)
        elif choice in ("cumsum", "sort", "argsort"):
            self.add(choice, [x], axis)
        elif choice == "cast":
            target = DTYPES[self.pick(["float32", "float64", "int32", "bool"])]
            y = self.add("cast", [x], target)
            self.add("cast", [y], self.dtype)
        elif x.shape[axis]:
            indices = Literal((x.shape[axis],), DTYPES["int32"], int(self.rng.integers(x.shape[axis])))
            if choice == "gather":
                self.add("gather", [x, indices], axis)
            else:
                self.add("scatter_add", [x, indices], axis, x.shape[axis] + 1)

    def make(self) -> tuple[Program, list[Any]]:
        shapes = [self.shape]
        for _ in range(int(self.rng.integers(0, 3))):
            shapes.append(tuple([n if self.rng.random() < 0.6 else 1 for n in self.shape]))
        inputs = tuple([Variable(shape, self.dtype) for shape in shapes])
        self.values += inputs
        for _ in range(int(self.rng.integers(1, 14))):
            self.step()
        count = min(len(self.values), int(self.rng.integers(1, 4)))
        outputs = [self.values[-1], *[self.pick(self.values) for _ in range(count)]]
        arrays = [self.array(v) for v in inputs]
        return Program(inputs, tuple(outputs), tuple(self.equations)), arrays

    def array(self, v: Variable) -> Any:
        """Random numbers in one of several layouts."""
        choice, dtype = int(self.rng.integers(4)), np.dtype(v.dtype.name)
        numbers = (self.rng.normal(size=v.shape) * 2).astype(dtype)
        if choice == 0:
            return np.asfortranarray(numbers).reshape(v.shape, order="F")
        if choice == 1 and v.shape:
            wide = np.zeros((*v.shape[:-1], 2 * v.shape[-1]), dtype)
            wide[..., ::2] = numbers
            return wide[..., ::2]
        if choice == 2 and v.shape:
            return np.broadcast_to(numbers[:1], v.shape) if v.shape[0] else numbers
        return numbers
