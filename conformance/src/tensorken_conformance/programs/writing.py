"""Writing: draw programs step by step, from any op of the table and from idioms around ops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import tensorken
from tensorken_conformance.enclosure import interval
from tensorken_conformance.operands.samples import kinds_of
from tensorken_conformance.programs.draft import ENCLOSED, FREQUENT, Draft, Draw, Writer
from tensorken_conformance.programs.idioms import (
    CROSSED,
    MOVING,
    SPELLED,
    Idiom,
    crossed,
    matmul,
    picked,
    product_sum,
    spelled,
)
from tensorken_conformance.programs.operands import beside, operand
from tensorken_conformance.programs.program import Program, Step
from tensorken_core.errors import TensorkenError
from tensorken_core.language.capabilities import Capabilities
from tensorken_core.language.dtypes import DType, int32
from tensorken_core.language.op import OPS, Op
from tensorken_core.language.shapes import Shape

MOST = 30
"""The largest number of nodes of a program."""


Write = Callable[[Draw, Capabilities, int], Program]
"""Draws the program of a number for a backend."""


def write(draw: Draw, capabilities: Capabilities, number: int = 0) -> Program:
    """A program of at most 30 nodes."""
    return _written(draw, capabilities, _writers(_supported(capabilities)), 2, 14)


def write_moved(draw: Draw, capabilities: Capabilities, number: int = 0) -> Program:
    """A program of 4 to 15 steps, most of which move or reduce elements, with arithmetic between them."""
    return _written(draw, capabilities, _moving_writers(_supported(capabilities)), 4, 12)


def write_short(draw: Draw, capabilities: Capabilities, number: int = 0) -> Program:
    """A program of one to four steps; those of odd numbers have only required elementwise ops."""
    supported = _supported(capabilities)
    required = [elementwise(op, on) for op, on in _elementwise_ops(supported) if op.body is None]
    return _written(draw, capabilities, required if required and number % 2 else _writers(supported), 1, 4)


def write_each(draw: Draw, capabilities: Capabilities, number: int = 0) -> Program:
    """A program of one op, or of none if its operands could not be drawn; consecutive numbers go through all ops."""
    draft, supported = Draft(draw, capabilities), _supported(capabilities)
    ops = [(op, on) for op in OPS.values() if op.samples and (on := _dtypes_of(op, supported))]
    writer = _writer_of(*ops[number % len(ops)])
    any(writer(draft) for _ in range(4))
    return draft.program


def _written(
    draw: Draw, capabilities: Capabilities, writers: Sequence[Writer], least: int, choices: int
) -> Program:
    """A program by so many writers, of at most MOST nodes."""
    draft = Draft(draw, capabilities)
    for _ in range(least + draw(choices)):
        if len(draft.nodes) > MOST - 5:  # a step adds no more than four operands and itself
            break
        draft.choice(writers)(draft)
    return draft.program


def write_special(draw: Draw, capabilities: Capabilities, number: int = 0) -> Program:
    """An elementwise op of infinities, NaN, zeros and the largest numbers; consecutive numbers go through all ops."""
    draft = Draft(draw, capabilities)
    ops = _elementwise_ops(_supported(capabilities))
    op, dtypes = ops[number % len(ops)]
    dtype, shape = draft.choice(dtypes), draft.choice([(7,), (2, 3), (2, 3, 2)])
    kinds = kinds_of(op, op.arity or 2, dtype)
    numbers = [draft.leaf(shape, kind, op.domain, wild=True) for kind in kinds]
    draft.add(Step(text(op, len(kinds), ()), tuple(numbers), (op.name,)), keep=True)
    return draft.program


@dataclass(frozen=True, slots=True)
class Supported:
    """The dtypes of a backend, and what it declares unsupported: the key of its writers."""

    dtypes: tuple[str, ...]
    unsupported: tuple[tuple[str, str], ...]

    def has(self, ops: Iterable[str], *dtypes: DType) -> bool:
        """Whether it has these dtypes, and supports these ops in the first."""
        declared = Capabilities(dtypes=self.dtypes, unsupported=dict(self.unsupported))
        known = all(dtype.name in self.dtypes for dtype in dtypes)
        return known and all(declared.why_not(op, dtypes[0].name) is None for op in ops)

    def for_all(self, ops: Iterable[str], kind: str) -> list[DType]:
        """The dtypes of a kind in which it supports all of these ops, the simplest first."""
        kinds = {"any": ("bool", "int", "float"), "numeric": ("int", "float")}.get(kind, (kind,))
        found = [dtype for dtype in ENCLOSED if dtype.kind in kinds and self.has(ops, dtype)]
        return sorted(found, key=_simplicity)


def _supported(capabilities: Capabilities) -> Supported:
    return Supported(tuple(sorted(capabilities.dtypes)), tuple(sorted(capabilities.unsupported.items())))


# ---- ops of the table ----------------------------------------------------------------------------------------

WRITTEN = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "pow": "{0} ** {1}",
    "neg": "-{0}",
    "lt": "{0} < {1}",
    "eq": "tk.equal({0}, {1})",
    "remainder": "{0} % {1}",
    "floor_divide": "{0} // {1}",
    "bitwise_and": "{0} & {1}",
    "bitwise_or": "{0} | {1}",
    "bitwise_xor": "{0} ^ {1}",
    "shift_left": "{0} << {1}",
}
"""The Python of ops that have an operator, or a function of another name."""

METHODS = ("reshape", "permute", "expand", "flip", "pad", "crop", "gather", "scatter_add")
"""Ops that are methods of tensors with the same params."""

UNBROADCAST = "integer_pow shift_right sech_squared gaussian to_bits from_bits threefry2x32".split()
"""Ops without an equivalent public function."""

CARRIES = ("where", "cast", "reshape", "permute", "expand", "flip", "pad", "crop", "max", "min", "sort")
"""Ops that return their operands' values, including infinities and NaN."""

OFTEN = "cast where gather scatter_add pad crop permute expand sum argmax concatenate".split()
"""Ops that are drawn twice as often as others, since they have more possible faults."""

MOVED = {
    "add": 2,
    "sub": 2,
    "mul": 2,
    "maximum": 1,
    "where": 2,
    "exp": 1,
    "cast": 1,
    "reshape": 4,
    "permute": 5,
    "expand": 3,
    "flip": 3,
    "crop": 3,
    "pad": 4,
    "gather": 4,
    "scatter_add": 3,
    "sum": 6,
    "max": 3,
    "fused_multiply_add": 2,
    "concatenate": 1,
}
"""The ops of programs that move and reduce elements, and how often each is drawn."""


def text(op: Op, count: int, params: tuple[Any, ...]) -> str:
    """The Python of an op on so many operands."""
    names = [f"{{{i}}}" for i in range(count)]
    shown = [f'"{p}"' if isinstance(p, DType) else repr(p) for p in params]
    if op.name in WRITTEN:
        return WRITTEN[op.name]
    if op.name == "cast":
        return f"{{0}}.astype({shown[0]})"
    if op.name in METHODS:
        return f"{{0}}.{op.name}({', '.join([*names[1:], *shown])})"
    if op.elementwise and op.name not in UNBROADCAST and hasattr(tensorken, op.name):
        return f"tk.{op.name}({', '.join(names)})"
    call = f"{{0}}.apply({', '.join([f'OPS[{op.name!r}]', *names[1:], *shown])})".replace("'", '"')
    return call


@cache
def _dtypes_of(op: Op, supported: Supported) -> list[DType]:
    """The dtypes for which an op is defined and the backend supports it."""
    found = []
    for dtype in ENCLOSED:
        operands = kinds_of(op, op.arity or 2, dtype)
        params = tuple([{"dtype": dtype}.get(kind, ()) for kind in op.params])
        try:
            results = op.dtype(*operands, *params)
        except TensorkenError:
            continue
        results = results if isinstance(results, tuple) else (results,)
        if supported.has((op.name,), dtype, *operands, *results):
            found.append(dtype)
    return sorted(found, key=_simplicity)


def _simplicity(dtype: DType) -> int:
    """The place of a dtype among all, the simplest first."""
    names = [*FREQUENT, *[d.name for d in ENCLOSED if d.name not in FREQUENT]]
    return names.index(dtype.name)


def elementwise(op: Op, dtypes: list[DType]) -> Writer:
    """Writes an elementwise op on operands that are broadcast and sometimes promoted."""

    def writer(draft: Draft) -> bool:
        dtype = draft.dtype(dtypes)
        kinds = kinds_of(op, op.arity or 2, dtype)
        same = op.name in UNBROADCAST
        written = text(op, len(kinds), ())
        wild = op.name in CARRIES and draft.chance(2)
        numbers = [operand(draft, kinds[-1], None, op.domain, wild)]
        for kind in reversed(kinds[:-1]):
            mixed = kind is dtype and not same and op.arity == 2 and draft.chance(6)
            chosen = draft.choice(dtypes) if mixed else kind
            numbers.insert(0, beside(draft, draft.tensors[numbers[-1]], chosen, op.domain, same))
        # either operand may be the smaller one
        if op.arity == 2 and kinds[0] is kinds[1] and draft.chance(2):
            numbers.reverse()
        if draft.add(Step(written, tuple(numbers), (op.name,)), wild or draft.chance(12)):
            return True
        shape = draft.tensors[numbers[-1]].shape
        fresh = [draft.leaf(shape, kind, op.domain) for kind in kinds]
        return draft.add(Step(written, tuple(fresh), (op.name,)), True)

    return writer


def along_axes(op: Op, dtypes: list[DType]) -> Writer:
    """Writes an op on one operand, with random params for its shape."""

    def writer(draft: Draft) -> bool:
        dtype = draft.dtype(dtypes)
        wild = op.name in CARRIES and draft.chance(2)
        number = operand(draft, dtype, wild=wild)
        x = draft.tensors[number]
        params = _params(draft, op, x.shape)
        if params is not None:
            step = Step(text(op, 1, params), (number,), (op.name,))
            if draft.add(step, wild or draft.chance(12)):
                return True
        return from_sample(op, dtypes)(draft)

    return writer


def _params(draft: Draft, op: Op, shape: Shape) -> tuple[Any, ...] | None:
    """Random params for an operand of this shape; None if a kind of param is unknown."""
    found: list[Any] = []
    for kind in op.params:
        if kind == "axis":
            if not shape:
                return None
            found.append(draft.draw(len(shape)))
        elif kind == "axes":
            found.append(tuple([i for i in range(len(shape)) if draft.draw(2) == 0]))
        elif kind == "order":
            found.append(_order(draft, len(shape)))
        elif kind == "pads":
            found.append(tuple([(draft.draw(2), draft.draw(3)) for _ in shape]))
        elif kind == "limits":
            found.append(tuple([_range(draft, n) for n in shape]))
        elif kind == "dtype":
            found.append(draft.choice(draft.dtypes))
        elif kind == "shape" and op.name == "expand":
            found.append(tuple([2 + draft.draw(2) if n == 1 and draft.draw(2) else n for n in shape]))
        elif kind == "shape":
            found.append(_reshaped(draft, shape))
        else:
            return None
    return tuple(found)


def _order(draft: Draft, rank: int) -> tuple[int, ...]:
    rest, order = list(range(rank)), []
    while rest:
        order.append(rest.pop(draft.draw(len(rest))))
    return tuple(order)


def _range(draft: Draft, size: int) -> tuple[int, int]:
    start = draft.draw(2) if size else 0
    return min(start, size), size - (draft.draw(2) if size > start else 0)


def _reshaped(draft: Draft, shape: Shape) -> Shape:
    count = int(np.prod(shape, dtype=int))
    options: list[Shape] = [(count,), (1, count), (*shape, 1)]
    options += [(n, count // n) for n in (2, 3, 4) if count and count % n == 0]
    return draft.choice(options)  # type: ignore[no-any-return]


def from_sample(op: Op, dtypes: list[DType]) -> Writer:
    """Writes an op on operands with the shapes of one of its samples."""

    def writer(draft: Draft) -> bool:
        dtype = draft.dtype(dtypes)
        shapes, params = draft.choice(op.samples)
        kinds_of_params = zip(op.params, params, strict=True)
        params = tuple([draft.choice(draft.dtypes) if k == "dtype" else p for k, p in kinds_of_params])
        kinds = kinds_of(op, op.arity or 2, dtype)
        numbers = []
        for number, shape in enumerate(shapes):
            role = op.operand_kinds[number] if op.operand_kinds else "data"
            if role == "indices":
                size = params[1] if op.name == "scatter_add" else shapes[0][params[0]]
                numbers.append(draft.given(_indices(draft, shape[0], size), int32))
            elif op.adjust_samples is not None:
                numbers.append(draft.leaf(shape, dtype, op.domain))
            else:
                numbers.append(operand(draft, kinds[min(number, len(kinds) - 1)], shape, op.domain))
        if op.adjust_samples is not None:
            prepared = op.adjust_samples(*[draft.tensors[i] for i in numbers])
            del draft.nodes[-len(numbers) :], draft.tensors[-len(numbers) :], draft.fine[-len(numbers) :]
            numbers = [draft.given(interval(x).low.astype(x.dtype.name), x.dtype) for x in prepared]
        written = text(op, len(numbers), params)
        if op.results != 1:
            written += f"[{draft.draw(op.results or 1)}]"
        return draft.add(Step(written, tuple(numbers), (op.name,)), True)

    return writer


def _indices(draft: Draft, count: int, size: int) -> Any:
    return np.array([draft.draw(size) for _ in range(count)], "int32")


def gather(op: Op, dtypes: list[DType]) -> Writer:
    """Writes a gather, or a scatter_add of as many slices as the operand has."""

    def writer(draft: Draft) -> bool:
        dtype = draft.dtype(dtypes)
        number = operand(draft, dtype)
        x = draft.tensors[number]
        if not x.ndim or not x.size:
            return from_sample(op, dtypes)(draft)
        axis = draft.draw(x.ndim)
        if op.name == "gather":
            params: tuple[int, ...] = (axis,)
            indices = draft.given(_indices(draft, 1 + draft.draw(4), x.shape[axis]), int32)
        else:
            params = (axis, 1 + draft.draw(4))
            indices = draft.given(_indices(draft, x.shape[axis], params[1]), int32)
        return draft.add(Step(text(op, 2, params), (number, indices), (op.name,)), draft.chance(12))

    return writer


def concatenate(op: Op, dtypes: list[DType]) -> Writer:
    """Writes a concatenation of two or three."""

    def writer(draft: Draft) -> bool:
        dtype = draft.dtype(dtypes)
        first = operand(draft, dtype)
        shape = draft.tensors[first].shape
        if not shape:
            return from_sample(op, dtypes)(draft)
        axis = draft.draw(len(shape))
        numbers = [first, *[operand(draft, dtype, shape) for _ in range(1 + draft.draw(2))]]
        names = ", ".join([f"{{{i}}}" for i in range(len(numbers))])
        return draft.add(Step(f"tk.concatenate([{names}], {axis})", tuple(numbers), (op.name,)))

    return writer


# ---- all of them -------------------------------------------------------------------------------------------


def _writer_of(op: Op, dtypes: list[DType]) -> Writer:
    if op.elementwise:
        return elementwise(op, dtypes)
    if op.name in ("gather", "scatter_add"):
        return gather(op, dtypes)
    if op.name == "concatenate":
        return concatenate(op, dtypes)
    known = {"axis", "axes", "order", "pads", "limits", "dtype", "shape"}
    plain = op.adjust_samples is None and not op.per_example
    if op.arity == 1 and op.params and plain and set(op.params) <= known:
        return along_axes(op, dtypes)
    return from_sample(op, dtypes)


@cache
def _writers(supported: Supported) -> list[Writer]:
    """All writers for a backend, simple ones first."""
    writers = _idiomatic(SPELLED, supported)
    if usable := supported.for_all(("mul", "sum", "add", "sub"), "numeric"):
        writers += [matmul(usable), *[product_sum(usable)] * 2]
    if usable := supported.for_all(CROSSED.values(), "numeric"):
        writers += [crossed(usable)] * 4
    for op in OPS.values():
        on = _dtypes_of(op, supported) if op.samples else []
        if on:
            writers += [_writer_of(op, on)] * (2 if op.name in OFTEN else 1)
    return writers


def _idiomatic(idioms: Sequence[Idiom], supported: Supported) -> list[Writer]:
    """Writers of those idioms that a backend supports."""
    writers: list[Writer] = []
    for written, ops, kind in idioms:
        usable = supported.for_all(ops, kind)
        if usable and ("cast" not in ops or int32.name in supported.dtypes):
            writers.append(spelled(written, ops, usable))
    return writers


@cache
def _moving_writers(supported: Supported) -> list[Writer]:
    """Writers of programs that move and reduce elements."""
    writers = _idiomatic(MOVING, supported) * 2
    if int32.name in supported.dtypes and (usable := supported.for_all(("gather",), "any")):
        writers += [picked(usable)] * 2
    for name, times in MOVED.items():
        if on := _dtypes_of(OPS[name], supported):
            writers += [_writer_of(OPS[name], on)] * times
    return writers


@cache
def _elementwise_ops(supported: Supported) -> list[tuple[Op, list[DType]]]:
    """The elementwise ops, and the dtypes on which each is defined and the backend has it."""
    dtypes = [(op, _dtypes_of(op, supported)) for op in OPS.values() if op.elementwise]
    return [(op, on) for op, on in dtypes if on]
