"""Idioms: common Python around ops: operators with numbers, indexing, matrix products and sums of products."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tensorken_conformance.programs.draft import Draft, Writer
from tensorken_conformance.programs.operands import beside, operand
from tensorken_conformance.programs.program import Step
from tensorken_core.language.dtypes import DType, int32
from tensorken_core.tensor.tensor import Tensor


def spelled(
    written: Callable[[Draft, Tensor], str | None], ops: tuple[str, ...], dtypes: list[DType]
) -> Writer:
    """Writes an expression of one operand."""

    def writer(draft: Draft) -> bool:
        number = operand(draft, draft.dtype(dtypes))
        found = written(draft, draft.tensors[number])
        return found is not None and draft.add(Step(found, (number,), ops), draft.chance(12))

    return writer


def _key(draft: Draft, x: Tensor) -> str | None:
    """An index of slices, numbers and new axes."""
    if not x.ndim:
        return None
    parts = []
    for n in x.shape[: 1 + draft.draw(x.ndim)]:
        ends = [str(n - 1), "0"] if n else []
        options = [":", "1:", "::-1", "::2", ":-1", "None, :", "-1:", *ends]
        parts.append(draft.choice(options))
    return f"{{0}}[{', '.join(parts)}]"


def _moves(draft: Draft, x: Tensor) -> str | None:
    """A view of a view, or of more."""
    if not x.ndim:
        return None
    written, rank = "{0}", x.ndim
    for _ in range(2 + draft.draw(3)):
        options = ["[::-1]", "[..., ::-1]", "[::2]", "[1:]", f".permute({tuple(reversed(range(rank)))})"]
        options.append("[None]" if rank < 4 else "[:-1]")
        chosen = draft.choice(options)
        rank += chosen == "[None]"
        written += chosen
    return written


def _axis(draft: Draft, x: Tensor) -> int | None:
    return draft.draw(x.ndim + 1) - 1 if x.ndim else None


def _with_axis(name: str) -> Callable[[Draft, Tensor], str | None]:
    def written(draft: Draft, x: Tensor) -> str | None:
        axis = _axis(draft, x)
        keep = ", keepdims=True" if draft.draw(3) == 2 else ""
        return f"{name.format('{0}')}{'None' if axis is None or axis < 0 else axis}{keep})"

    return written


def matmul(dtypes: list[DType]) -> Writer:
    """Writes a matrix product."""

    def writer(draft: Draft) -> bool:
        dtype = draft.dtype(dtypes)
        first = draft.pick(lambda x: x.dtype is dtype and x.ndim in (1, 2, 3) and x.size > 0)
        if first is None:
            first = draft.leaf((2, 3), dtype)
        x = draft.tensors[first]
        inner = x.shape[-1]
        shape = draft.choice([(inner,), (inner, 2), (inner, 3)])
        second = operand(draft, dtype, shape)
        step = Step("{0} @ {1}", (first, second), ("mul", "sum", "fused_multiply_add"))
        return draft.add(step, draft.chance(12))

    return writer


def picked(dtypes: list[DType]) -> Writer:
    """Writes the selection of one element of each row, by positive or negative indices."""

    def writer(draft: Draft) -> bool:
        dtype = draft.dtype(dtypes)
        first = draft.pick(lambda x: x.dtype is dtype and x.ndim == 2 and x.size > 0)
        first = draft.leaf((2, 3), dtype) if first is None else first
        rows, columns = draft.tensors[first].shape
        found = [draft.draw(2 * columns) - columns for _ in range(rows)]
        second = draft.given(np.array(found, "int32"), int32)
        step = Step(f"{{0}}[{list(range(rows))}, {{1}}]", (first, second), ("gather", "add", "reshape"))
        return draft.add(step, draft.chance(12))

    return writer


CROSSED = {
    "{0}.reshape((-1, 1)) + {1}": "add",
    "{0}.reshape((-1, 1)) - {1}": "sub",
    "{0}.reshape((-1, 1)) * {1}": "mul",
    "tk.maximum({0}.reshape((-1, 1)), {1})": "maximum",
    "{0} - {1}.reshape((-1, 1))": "sub",
    "{0}.reshape((-1, 1)) < {1}": "lt",
    "tk.where({0}.reshape((-1, 1)) < {1}, {0}.reshape((-1, 1)), {1})": "where",
}
"""Expressions of a column and a row, and the op of both."""


def crossed(dtypes: list[DType]) -> Writer:
    """Writes an op on a column and a row, whose shapes both differ from the result's."""

    def writer(draft: Draft) -> bool:
        dtype = draft.dtype(dtypes)

        def fits(x: Tensor) -> bool:
            return x.dtype is dtype and x.ndim == 1 and 1 < x.size < 8

        first = draft.pick(fits)
        first = draft.leaf((3,), dtype) if first is None else first
        second = draft.pick(fits) if draft.chance(2) else None
        second = draft.leaf((4,), dtype) if second is None else second
        written = draft.choice(list(CROSSED))
        return draft.add(Step(written, (first, second), ("reshape", CROSSED[written])), draft.chance(12))

    return writer


def product_sum(dtypes: list[DType]) -> Writer:
    """Writes a sum of products, which a backend may fuse; or two of them."""

    def writer(draft: Draft) -> bool:
        dtype = draft.dtype(dtypes)
        first = draft.pick(lambda x: x.dtype is dtype and x.ndim > 0 and x.size > 0)
        if first is None:
            first = draft.leaf((2, 3), dtype)
        x = draft.tensors[first]
        second = beside(draft, x, dtype, (-2.0, 2.0), False)
        axis = draft.draw(x.ndim)
        third = beside(draft, x, dtype, (-2.0, 2.0), False)
        options = [f"({{0}} * {{1}}).sum(-{axis + 1})", f"({{0}} * {{1}} - {{0}} * {{2}}).sum(-{axis + 1})"]
        options.append(f"({{0}} * {{1}}).sum(-{axis + 1}, keepdims=True) * {{2}}")
        which = draft.draw(3)
        numbers = (first, second, third)[: 2 if which == 0 else 3]
        step = Step(options[which], numbers, ("mul", "sum", "fused_multiply_add", "add", "sub"))
        return draft.add(step, draft.chance(12))

    return writer


def _strided(draft: Draft, x: Tensor) -> str | None:
    """Every n-th element of a permuted and flattened tensor, where n may be the size of the last axis."""
    permuted = x.ndim > 1 and not draft.chance(3)
    step = x.shape[0] if permuted else 2
    if step < 2 or x.size < 2 * step:
        return None
    start, count = draft.draw(step), x.size // step
    axes = tuple(reversed(range(x.ndim)))
    rows = f"{{0}}.permute({axes})" if permuted else "{0}"
    return f"{rows}.reshape(-1)[{start}:{start + step * (count - 1) + 1}:{step}]"


def _neighbours(draft: Draft, x: Tensor) -> str | None:
    """The differences of neighbours of a computed value."""
    if not x.ndim or x.shape[-1] < 2:
        return None
    return f"({{0}} * {{0}})[..., {draft.choice(['1:', '::-1'])}][..., : {x.shape[-1] - 1}] - {{0}}[..., :-1]"


def _normed(draft: Draft, x: Tensor) -> str | None:
    """A reduction, and another one of a value computed from it."""
    if not x.ndim or not x.size:
        return None
    axis = draft.draw(x.ndim)
    options = [
        f"({{0}} - {{0}}.max({axis}, keepdims=True)).sum({axis})",
        f"({{0}} - {{0}}.sum({axis}, keepdims=True)).max({x.ndim - 1 - axis})",
        f"{{0}}.sum({axis}, keepdims=True) * {{0}}",
    ]
    return options[draft.draw(len(options))]


Idiom = tuple[Callable[[Draft, Tensor], str | None], tuple[str, ...], str]
"""The Python of an idiom, the ops that it tests, and the kinds of its dtypes."""

SPELLED: list[Idiom] = [
    (_key, ("crop", "flip", "reshape"), "any"),
    (_key, ("crop", "flip", "reshape"), "any"),
    (_moves, ("crop", "flip", "permute", "reshape"), "any"),
    (_moves, ("crop", "flip", "permute", "reshape"), "any"),
    (_moves, ("crop", "flip", "permute", "reshape"), "any"),
    (lambda draft, x: "{0}.T" if x.ndim == 2 else None, ("permute",), "any"),
    (lambda draft, x: "{0}.reshape((-1,))" if x.size else None, ("reshape",), "any"),
    (lambda draft, x: f"{{0}} * {draft.choice([2, 3, -1, 0.5])}", ("mul",), "float"),
    (lambda draft, x: f"{draft.choice([1, 2, 0.1])} - {{0}}", ("sub",), "float"),
    (lambda draft, x: f"{{0}} / {draft.choice([2, 3, -7])}", ("div",), "float"),
    (lambda draft, x: f"{{0}} * {draft.choice([2, 3, -1])} + 1", ("mul", "add"), "int"),
    (lambda draft, x: f"{{0}} > {draft.choice([0, 1, -1])}", ("lt",), "float"),
    (_with_axis("{0}.sum("), ("sum",), "numeric"),
    (_with_axis("{0}.max("), ("max",), "any"),
    (_with_axis("tk.mean({0}, "), ("sum", "div", "mul"), "float"),
    (lambda draft, x: "{0}.broadcast_to((2,) + {0}.shape)", ("expand", "reshape"), "any"),
    (lambda draft, x: "tk.where({0} > 0, {0}, 0.5 * {0})", ("where", "lt", "mul"), "float"),
    (lambda draft, x: '{0}.astype("int32")', ("cast",), "float"),
    (lambda draft, x: "tk.roll({0}, 1, 0)" if x.ndim else None, ("concatenate", "crop"), "any"),
    (lambda draft, x: "tk.clip({0}, -1, 1)", ("maximum", "minimum"), "float"),
    (lambda draft, x: "tk.tanh({0}) * {0}.sum()", ("tanh", "mul", "sum"), "float"),
]
"""Idioms of all programs."""

MOVING: list[Idiom] = [
    (_key, ("crop", "flip", "reshape"), "any"),
    (_moves, ("crop", "flip", "permute", "reshape"), "any"),
    (_strided, ("crop", "permute", "reshape"), "any"),
    (_neighbours, ("mul", "sub", "crop", "flip"), "numeric"),
    (_normed, ("max", "sum", "sub", "mul"), "numeric"),
]
"""Idioms of programs that move and reduce elements."""
