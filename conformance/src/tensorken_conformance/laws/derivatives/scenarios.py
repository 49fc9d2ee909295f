"""Scenarios: functions and points to differentiate: every op at its samples, views, broadcasts, and functions."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.case import Case
from tensorken_conformance.laws.derivatives.functions import FUNCTIONS, Written
from tensorken_conformance.layouts import chains
from tensorken_conformance.numbers.host_arrays import is_float
from tensorken_conformance.operands.samples import drawn, role_of, takes
from tensorken_conformance.subject import Array, Subject, put
from tensorken_core.language.dtypes import DTYPES, DType, bfloat16, bool_, float16, float32, float64, int32
from tensorken_core.language.op import OPS, Op, Sample
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.dispatch import apply
from tensorken_core.tensor.tensor import Tensor

Function = Callable[..., Tensor]


def of_some(
    function: Callable[..., Any], operands: Sequence[Tensor], active: Sequence[int]
) -> tuple[Callable[..., Any], list[Tensor]]:
    """The function of the operands at some positions, with the others fixed, and the operands at these positions."""

    def partial(*chosen: Tensor) -> Any:
        full = list(operands)
        for i, x in zip(active, chosen, strict=True):
            full[i] = x
        return function(*full)

    return partial, [operands[i] for i in active]


VIEWS = ("permute", "flip", "crop", "expand")
"""The movements that may make an operand on the backend."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A function, and how its operands are drawn.

    Attributes:
        name: of the op, or of the function.
        detail: the sample, view or broadcast.
        function: takes all operands, returns one tensor.
        draw: the operands, floats in float64, from a source of random numbers.
        variables: the indices of the operands that have derivatives.
        views: the movement that makes each operand; empty for a plain one.
        main: whether laws that try each op once use this one.
        crossing: whether the function has a jump or a kink at the point, so that differences do not apply.
    """

    name: str
    detail: str
    function: Function
    draw: Callable[[random.Random], list[Array]]
    variables: tuple[int, ...]
    views: tuple[str, ...] = ()
    main: bool = True
    crossing: bool = False

    @property
    def enclosed(self) -> bool:
        """Whether there are intervals for it: not for ops on matrices."""
        return not self.is_op or OPS[self.name].adjust_samples is None

    @property
    def is_op(self) -> bool:
        """Whether this is about one op of the table."""
        return self.name in OPS

    def operands(self, interpreter: RawTensor[Any], values: Sequence[Array], dtype: DType) -> list[Tensor]:
        """Tensors of these values on a backend, made by the movements of `views`; floats in the dtype."""
        views = self.views or ("",) * len(values)
        return [
            chains.lying(interpreter, chains.single(view, x.shape), x, _kind(x, dtype))
            for x, view in zip(values, views, strict=True)
        ]

    def at(
        self, operands: Sequence[Tensor], active: Sequence[int] | None = None
    ) -> tuple[Function, list[Tensor]]:
        """The function of the operands at some positions, by default of the variables, and these operands."""
        return of_some(self.function, operands, self.variables if active is None else active)

    def pushed(self, operands: Sequence[Tensor], v: Sequence[Tensor]) -> Tensor:
        """The tangent of the result for tangents of the variables."""
        f, at = self.at(operands)
        return tk.jvp(f, at, v)[1]  # type: ignore[no-any-return]

    def pulled(self, operands: Sequence[Tensor], u: Tensor) -> list[Tensor]:
        """The cotangents of the variables for a cotangent of the result."""
        f, at = self.at(operands)
        return list(tk.vjp(f, *at)[1](u))


@dataclass(frozen=True, slots=True)
class Point:
    """Operands of a scenario, at which it is differentiated.

    Attributes:
        scenario: the function.
        values: its operands.
        dtype: of the floats.
        shape: of the result.
        kind: the dtype of the result.
    """

    scenario: Scenario
    values: list[Array]
    dtype: DType
    shape: Shape
    kind: DType

    def operands(self, interpreter: RawTensor[Any]) -> list[Tensor]:
        """The operands as tensors of an interpreter."""
        return self.scenario.operands(interpreter, self.values, self.dtype)

    def tangents(self, interpreter: RawTensor[Any], v: Sequence[Array]) -> list[Tensor]:
        """Tangents of operands as tensors of an interpreter."""
        return tensors(interpreter, v, self.dtype)

    def cotangent(self, interpreter: RawTensor[Any], u: Array) -> Tensor:
        """A cotangent of the result as a tensor of an interpreter."""
        return tensors(interpreter, [u], self.kind)[0]


def tensors(interpreter: RawTensor[Any], values: Sequence[Array], dtype: DType) -> list[Tensor]:
    """Plain tensors of these values on a backend; floats in the dtype."""
    return [put(interpreter, x, _kind(x, dtype)) for x in values]


def _kind(values: Array, dtype: DType) -> DType:
    return dtype if is_float(values) else DTYPES[values.dtype.name]


def point_of(subject: Subject, scenario: Scenario, values: list[Array], dtype: DType) -> Point:
    """The point with these operands; the backend tells the shape and dtype of the result."""
    y = scenario.function(*scenario.operands(subject.stack, values, dtype))
    return Point(scenario, values, dtype, y.shape, y.dtype)


def dyadic(rng: random.Random, shape: Shape) -> Array:
    """Directions: odd multiples of 1/64 in (-1, 1), which all float dtypes represent, so that short sums are exact."""
    count = int(np.prod(shape, dtype=int))
    return np.array([(2 * rng.randrange(-32, 32) + 1) / 64 for _ in range(count)]).reshape(shape)


def one_result(op: Op, operands: Sequence[Tensor], params: tuple[Any, ...]) -> Tensor:
    """The result of an op of the table; several are concatenated, without signs that are not unique."""
    op = OPS[op.name]  # looked up at each call, since a fault may replace it
    declared = operands[0].interpreter.base.capabilities.dtypes  # type: ignore[attr-defined]
    params = tuple(
        [operands[0].dtype if isinstance(p, DType) and p.name not in declared else p for p in params]
    )
    result = apply(op, operands, params)
    if op.results == 1:
        return result  # type: ignore[no-any-return]
    axes = _SIGNED.get(op.name, {})
    parts = [_unsigned(y, axes[k]) if k in axes else y for k, y in enumerate(result)]
    return tk.concatenate([y.reshape((y.size,)) for y in parts])


_SIGNED: dict[str, dict[int, int]] = {"eigh": {1: -2}, "svd": {0: -2, 2: -1}, "qr": {0: -2, 1: -1}}
"""The results whose vectors along an axis may have either sign, depending on the backend."""


def _unsigned(x: Tensor, axis: int) -> Tensor:
    """Squares and products of neighbours of vectors along an axis, which do not depend on the sign."""
    return x * (x + tk.roll(x, 1, axis) * 0.5)


def sample_name(sample: Sample) -> str:
    """A sample as a word."""
    shapes, params = sample
    sizes = "_".join("x".join(map(str, shape)) or "scalar" for shape in shapes)
    return sizes + "".join(f"-{param}" for param in params).replace(" ", "")


def scenarios() -> dict[tuple[str, str], Scenario]:
    """All scenarios by name and detail; they are made again if the table of ops changes, for example by a plugin."""
    return _scenarios(tuple(OPS.values()))


@functools.lru_cache(maxsize=4)
def _scenarios(table: tuple[Op, ...]) -> dict[tuple[str, str], Scenario]:
    return {(s.name, s.detail): s for s in (*_ops(), *_broadcasts(), *_functions())}


def constant_ops(subject: Subject) -> Iterator[tuple[Scenario, DType]]:
    """The ops without derivatives, at their main samples, and a dtype for each."""
    floats = main_dtype(subject)
    for op in OPS.values():
        if op.differentiable or op.name == "fused_multiply_add":  # transforms never run it
            continue
        dtype = next((d for d in (floats, int32, bool_) if d is not None and takes(op, d)), None)
        if dtype is not None:
            yield _of_op(op, max(samples_of(op), key=_weight), main=True, dtype=dtype), dtype


def _ops() -> Iterator[Scenario]:
    for number, op in enumerate(op for op in OPS.values() if op.differentiable and op.higher_order is None):
        samples = samples_of(op)
        last = max(samples, key=_weight)
        for sample in samples:
            yield _of_op(op, sample, main=sample is last)
        shape = last[0][0]
        if shape and 0 not in shape and op.adjust_samples is None:
            view = VIEWS[number % len(VIEWS)]
            if view == "expand" and (shape[0] == 1 or op.name in _CHOOSING):
                view = "flip"
            yield _of_op(op, last, main=False, view=view)


_CHOOSING = ("max", "min", "sort", "maximum", "minimum")
"""Ops that select: equal rows, as of an expanded operand, are ties, where differences do not apply."""


def samples_of(op: Op) -> list[Sample]:
    """The samples of an op, and two with more axes, some of size 1, where alone some rules are wrong."""
    samples = list(op.samples)
    if op.params == ("dtype",):
        samples.append((op.samples[0][0], (float32,)))
    if op.elementwise:
        samples = [s for s in samples if len(s[0][0]) != 1]  # samples with many axes cover those with one
        samples.append((((2, 1, 3),) * (op.arity or 1), ()))
    elif op.adjust_samples is None and all(kind in _DEEPER for kind in op.params):
        shapes, params = max(samples, key=_weight)
        deeper = tuple([s if role_of(op, i) == "indices" else (2, 1, *s) for i, s in enumerate(shapes)])
        samples.append((deeper, tuple([_DEEPER[k](p) for k, p in zip(op.params, params, strict=True)])))
        if op.arity == 1 and op.params in (("axes",), ("axis",)):
            samples.append((((2, 1, 3),), ((1,),) if op.params == ("axes",) else (1,)))
    return samples


_DEEPER: dict[str, Callable[[Any], Any]] = {
    "axes": lambda axes: tuple([axis + 2 for axis in axes]),
    "axis": lambda axis: axis + 2,
    "shape": lambda shape: (2, 1, *shape),
    "order": lambda order: (1, 0, *[axis + 2 for axis in order]),
    "pads": lambda pads: ((1, 0), (0, 1), *pads),
    "limits": lambda limits: ((0, 1), (0, 1), *limits),
    "size": lambda size: size,
    "dtype": lambda dtype: dtype,
}
"""The params of each kind after the operands get two more leading axes, of sizes 2 and 1."""


def _weight(sample: Sample) -> tuple[bool, int]:
    """The key that selects the main sample of an op: it is not empty, and has the most axes."""
    shapes = sample[0]
    return all(0 not in shape for shape in shapes), max(map(len, shapes), default=0)


def _of_op(op: Op, sample: Sample, *, main: bool, view: str = "", dtype: DType = float64) -> Scenario:
    shapes, params = sample
    data = tuple(i for i in range(len(shapes)) if op.differentiable and role_of(op, i) == "data")

    def draw(rng: random.Random) -> list[Array]:
        values = drawn(op, sample, dtype, rng)
        if view == "expand":
            values[0] = np.array(np.broadcast_to(values[0][:1], values[0].shape))
        return values

    return Scenario(
        op.name,
        sample_name(sample) + (f"-{view}" if view else ""),
        lambda *operands: one_result(op, operands, params),
        draw,
        data,
        (view, *[""] * (len(shapes) - 1)) if view else (),
        main,
        crossing=any(param in (float16, bfloat16, float32) for param in params),  # rounding makes values jump
    )


_PAIRS: tuple[tuple[Shape, Shape], ...] = (
    ((2, 3), (3,)),
    ((2, 1), (1, 3)),
    ((), (2, 3)),
    ((1,), (3, 1, 2)),
    ((2, 1, 3), (4, 1)),
)
"""Shapes that broadcasting extends: by leading axes, along axes of size 1 on either side or on both."""

_OPERATORS: dict[str, tuple[Function, float, float]] = {
    "add": (lambda a, b: a + b, -2.0, 2.0),
    "sub": (lambda a, b: a - b, -2.0, 2.0),
    "mul": (lambda a, b: a * b, -2.0, 2.0),
    "div": (lambda a, b: a / b, 0.5, 2.0),
    "pow": (lambda a, b: a**b, 0.5, 2.0),
    "maximum": (lambda a, b: tk.maximum(a, b), -2.0, 2.0),
    "where": (lambda a, b: tk.where(a > b, a * a, b), -2.0, 2.0),
    "atan2": (lambda a, b: tk.atan2(a, b), 0.5, 2.0),
}


def _broadcasts() -> Iterator[Scenario]:
    """Pairs of operands of the public operators, which broadcast them."""
    for name, (function, low, high) in _OPERATORS.items():
        for shapes in _PAIRS:
            draw = functools.partial(uniforms, shapes, low, high)
            detail = "broadcast-" + sample_name((shapes, ()))
            yield Scenario(name, detail, function, draw, (0, 1), main=False)


def uniform(rng: random.Random, shape: Shape, low: float, high: float) -> Array:
    """Numbers between two."""
    count = int(np.prod(shape, dtype=int))
    return np.array([rng.uniform(low, high) for _ in range(count)], np.float64).reshape(shape)


def uniforms(shapes: Sequence[Shape], low: float, high: float, rng: random.Random) -> list[Array]:
    """Arrays of these shapes, of numbers between two."""
    return [uniform(rng, shape, low, high) for shape in shapes]


def _drawn_for(written: Written, rng: random.Random) -> list[Array]:
    values = uniforms(written.shapes, *written.domain, rng)
    return [*(values if written.prepare is None else written.prepare(*values)), *written.constants]


def _functions() -> Iterator[Scenario]:
    for name, written in FUNCTIONS.items():
        draw, positions = functools.partial(_drawn_for, written), tuple(range(len(written.shapes)))
        yield Scenario(name, "", written.call, draw, positions, crossing=written.crossing)


def choices(positions: Sequence[int]) -> list[tuple[int, ...]]:
    """The sets of operands that are differentiated: each alone, and all."""
    alone: list[tuple[int, ...]] = [(i,) for i in positions]
    return alone if len(positions) == 1 else [*alone, tuple(positions)]


def main_dtype(subject: Subject) -> DType | None:
    """float64 where the backend declares it, else float32."""
    declared = subject.dtypes()
    return next((dtype for dtype in (float64, float32) if dtype in declared), None)


def cases_of(law: str, *, main: bool = False, smoke: bool = False) -> Callable[[Subject], Iterator[Case]]:
    """The cases of a law over the scenarios.

    Args:
        law: its id.
        main: whether it has one scenario of each op, except in a deep run.
        smoke: whether the smoke run has each op; else it has one function.
    """

    def cases(subject: Subject) -> Iterator[Case]:
        widest = main_dtype(subject)
        if widest is None:
            return
        dtypes = [widest]
        if subject.depth == "deep" and widest is float64 and float32 in subject.dtypes():
            dtypes.append(float32)
        for scenario in scenarios().values():
            if subject.depth == "smoke":
                chosen = scenario.main and _is_quick(scenario) if smoke else scenario.name == SMOKE
            else:
                chosen = scenario.main or not main or subject.depth == "deep"
            if chosen:
                for dtype in dtypes:
                    yield Case(law, scenario.name, dtype.name, detail=scenario.detail)

    return cases


def _is_quick(scenario: Scenario) -> bool:
    """Whether it is an op whose derivative is a short program: of all factorizations this is `inv`."""
    return scenario.is_op and (scenario.name == "inv" or OPS[scenario.name].adjust_samples is None)


SMOKE = "layer-norm"
"""The function of the smoke run: it broadcasts, reduces, divides and takes a root."""


def scenario_of(case: Case) -> Scenario:
    """The scenario of a case."""
    return scenarios()[case.op, case.detail]
