"""Writing: how programs are drawn, step by step; any op of the table, and what people write around them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import tensorken
from tensorken.errors import TensorkenError
from tensorken.spec.capabilities import Capabilities
from tensorken.spec.dtypes import DTYPES, DType, bool_, int32
from tensorken.spec.op import OPS, Op
from tensorken.spec.shapes import Shape
from tensorken.tensor import Tensor
from tensorken_conformance.enclosure import interval
from tensorken_conformance.programs.draft import LARGEST, SHAPES, Draft, Draw
from tensorken_conformance.programs.program import Program, Step

MOST = 30
"""How many nodes a program has at most."""

Writer = Callable[[Draft], bool]
"""Writes one step, and the leaves that it needs; whether it did."""


def write(draw: Draw, capabilities: Capabilities) -> Program:
    """A program of at most 30 nodes."""
    draft = Draft(draw, capabilities)
    writers = _writers(tuple(sorted(capabilities.dtypes)), tuple(sorted(capabilities.unsupported.items())))
    for _ in range(2 + draw(14)):
        if len(draft.nodes) > MOST - 4:
            break
        draft.choice(writers)(draft)
    return draft.program


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
"""How ops are written that have a sign of their own."""

METHODS = ("reshape", "permute", "expand", "flip", "pad", "crop", "gather", "scatter_add")
"""Ops that are written as methods with the op's own params."""

UNBROADCAST = (
    "integer_pow",
    "shift_right",
    "sech_squared",
    "gaussian",
    "to_bits",
    "from_bits",
    "threefry2x32",
)
"""Ops that no function of users stands for alone."""


CARRIES = ("where", "cast", "reshape", "permute", "expand", "flip", "pad", "crop", "max", "min", "sort")
"""Ops that hand on what they are given, infinities and NaN too."""

OFTEN = (
    "cast",
    "where",
    "gather",
    "scatter_add",
    "pad",
    "crop",
    "permute",
    "expand",
    "sum",
    "argmax",
    "concatenate",
)
"""Ops that are written twice as often as others, since much can go wrong with them."""


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


def _operand_dtypes(op: Op, dtype: DType) -> tuple[DType, ...]:
    roles = op.roles or ("data",) * (op.arity or 2)
    special = {"condition": bool_, "indices": int32}
    return tuple([special.get(role, dtype) for role in roles])


@cache
def _dtypes_of(op: Op, declared: tuple[str, ...], unsupported: tuple[tuple[str, str], ...]) -> list[DType]:
    """The dtypes on which an op is defined and the backend has it."""
    capabilities = Capabilities(dtypes=declared, unsupported=dict(unsupported))
    found = []
    for name, dtype in DTYPES.items():
        operands = _operand_dtypes(op, dtype)
        params = tuple([{"dtype": dtype}.get(kind, ()) for kind in op.params])
        try:
            results = op.dtype(*operands, *params)
        except TensorkenError:
            continue
        results = results if isinstance(results, tuple) else (results,)
        used = [*[d.name for d in operands], *[d.name for d in results]]
        if all(d in declared for d in used) and capabilities.why_not(op.name, name) is None:
            found.append(dtype)
    order = ("float32", "int32", "float64", "bool", "float16", "int64")
    return sorted(found, key=lambda dtype: order.index(dtype.name))


def _operand(
    draft: Draft, dtype: DType, shape: Shape | None = None, domain: Any = (-2.0, 2.0), wild: bool = False
) -> int:
    """An earlier node of this dtype (and shape), or a leaf."""
    found = None
    if not draft.chance(4):
        found = draft.pick(lambda x: x.dtype is dtype and (shape is None or x.shape == shape), wild)
    if found is not None:
        return found
    return draft.leaf(draft.choice(SHAPES) if shape is None else shape, dtype, domain, wild)


def _beside(draft: Draft, x: Tensor, dtype: DType, domain: Any, same: bool) -> int:
    """An operand that broadcasts with x, or has its shape."""
    if same:
        return _operand(draft, dtype, x.shape, domain)
    found = None
    if not draft.chance(3):
        found = draft.pick(lambda y: y.dtype is dtype and _broadcasts(x.shape, y.shape))
    if found is not None:
        return found
    cut = draft.draw(4) if x.ndim else 0
    shape = x.shape[cut:] if cut < 2 else (*x.shape[:-1], 1)
    if cut == 3 and 1 in x.shape:  # long where x is not
        shape = tuple([3 if n == 1 else 1 for n in x.shape])
    return draft.leaf(shape, dtype, domain)


def _broadcasts(a: Shape, b: Shape) -> bool:
    try:
        return bool(np.prod(np.broadcast_shapes(a, b), dtype=int) <= LARGEST)
    except ValueError:
        return False


def elementwise(op: Op, dtypes: list[DType]) -> Writer:
    """Writes an elementwise op, operands of several shapes and now and then dtypes being broadcast and promoted."""

    def writer(draft: Draft) -> bool:
        dtype = draft.dtype(dtypes)
        kinds = _operand_dtypes(op, dtype)
        same = op.name in UNBROADCAST
        written = text(op, len(kinds), ())
        wild = op.name in CARRIES and draft.chance(2)
        places = [_operand(draft, kinds[-1], None, op.domain, wild)]
        for kind in reversed(kinds[:-1]):
            mixed = kind is dtype and not same and op.arity == 2 and draft.chance(6)
            chosen = draft.choice(dtypes) if mixed else kind
            places.insert(0, _beside(draft, draft.tensors[places[-1]], chosen, op.domain, same))
        if op.arity == 2 and kinds[0] is kinds[1] and draft.chance(2):  # either may be the smaller one
            places.reverse()
        if draft.add(Step(written, tuple(places), (op.name,)), wild or draft.chance(12)):
            return True
        shape = draft.tensors[places[-1]].shape
        fresh = [draft.leaf(shape, kind, op.domain) for kind in kinds]
        return draft.add(Step(written, tuple(fresh), (op.name,)), True)

    return writer


def along_axes(op: Op, dtypes: list[DType]) -> Writer:
    """Writes an op on one operand, with params drawn for its shape by their kinds."""

    def writer(draft: Draft) -> bool:
        dtype = draft.dtype(dtypes)
        wild = op.name in CARRIES and draft.chance(2)
        place = _operand(draft, dtype, wild=wild)
        x = draft.tensors[place]
        params = _params(draft, op, x.shape)
        if params is not None:
            step = Step(text(op, 1, params), (place,), (op.name,))
            if draft.add(step, wild or draft.chance(12)):
                return True
        return from_sample(op, dtypes)(draft)

    return writer


def _params(draft: Draft, op: Op, shape: Shape) -> tuple[Any, ...] | None:
    """Params for an operand of this shape, or None if none are known."""
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
    """Writes an op on operands of one of its samples' shapes."""

    def writer(draft: Draft) -> bool:
        dtype = draft.dtype(dtypes)
        shapes, params = draft.choice(op.samples)
        params = tuple(
            [
                draft.choice(draft.dtypes) if k == "dtype" else p
                for k, p in zip(op.params, params, strict=True)
            ]
        )
        kinds = _operand_dtypes(op, dtype)
        places = []
        for number, shape in enumerate(shapes):
            role = op.roles[number] if op.roles else "data"
            if role == "indices":
                size = params[1] if op.name == "scatter_add" else shapes[0][params[0]]
                places.append(draft.given(_indices(draft, shape[0], size), int32))
            elif op.prepare is not None:
                places.append(draft.leaf(shape, dtype, op.domain))
            else:
                places.append(_operand(draft, kinds[min(number, len(kinds) - 1)], shape, op.domain))
        if op.prepare is not None:
            prepared = op.prepare(*[draft.tensors[i] for i in places])
            del draft.nodes[-len(places) :], draft.tensors[-len(places) :], draft.fine[-len(places) :]
            places = [draft.given(interval(x).low.astype(x.dtype.name), x.dtype) for x in prepared]
        written = text(op, len(places), params)
        if op.results != 1:
            written += f"[{draft.draw(op.results or 1)}]"
        return draft.add(Step(written, tuple(places), (op.name,)), True)

    return writer


def _indices(draft: Draft, count: int, size: int) -> Any:
    return np.array([draft.draw(size) for _ in range(count)], "int32")


def gather(op: Op, dtypes: list[DType]) -> Writer:
    """Writes a gather, or a scatter_add of as many slices as the operand has."""

    def writer(draft: Draft) -> bool:
        dtype = draft.dtype(dtypes)
        place = _operand(draft, dtype)
        x = draft.tensors[place]
        if not x.ndim or not x.size:
            return from_sample(op, dtypes)(draft)
        axis = draft.draw(x.ndim)
        if op.name == "gather":
            params: tuple[int, ...] = (axis,)
            indices = draft.given(_indices(draft, 1 + draft.draw(4), x.shape[axis]), int32)
        else:
            params = (axis, 1 + draft.draw(4))
            indices = draft.given(_indices(draft, x.shape[axis], params[1]), int32)
        return draft.add(Step(text(op, 2, params), (place, indices), (op.name,)), draft.chance(12))

    return writer


def concatenate(op: Op, dtypes: list[DType]) -> Writer:
    """Writes a concatenation of two or three."""

    def writer(draft: Draft) -> bool:
        dtype = draft.dtype(dtypes)
        first = _operand(draft, dtype)
        shape = draft.tensors[first].shape
        if not shape:
            return from_sample(op, dtypes)(draft)
        axis = draft.draw(len(shape))
        places = [first, *[_operand(draft, dtype, shape) for _ in range(1 + draft.draw(2))]]
        names = ", ".join([f"{{{i}}}" for i in range(len(places))])
        return draft.add(Step(f"tk.concatenate([{names}], {axis})", tuple(places), (op.name,)))

    return writer


# ---- what people write around them -----------------------------------------------------------------------------


def spelled(
    written: Callable[[Draft, Tensor], str | None], ops: tuple[str, ...], dtypes: list[DType]
) -> Writer:
    """Writes what is said of one operand."""

    def writer(draft: Draft) -> bool:
        place = _operand(draft, draft.dtype(dtypes))
        found = written(draft, draft.tensors[place])
        return found is not None and draft.add(Step(found, (place,), ops), draft.chance(12))

    return writer


def _key(draft: Draft, x: Tensor) -> str | None:
    """Indexing by slices, numbers and new axes."""
    if not x.ndim:
        return None
    parts = []
    for n in x.shape[: 1 + draft.draw(x.ndim)]:
        options = [
            ":",
            "1:",
            "::-1",
            "::2",
            ":-1",
            "None, :",
            "-1:",
            *([str(n - 1), "0"] if n else []),
        ]
        parts.append(draft.choice(options))
    return f"{{0}}[{', '.join(parts)}]"


def _axis(draft: Draft, x: Tensor) -> int | None:
    return draft.draw(x.ndim + 1) - 1 if x.ndim else None


def _with_axis(name: str) -> Callable[[Draft, Tensor], str | None]:
    def written(draft: Draft, x: Tensor) -> str | None:
        axis = _axis(draft, x)
        keep = ", keepdims=True" if draft.draw(3) == 2 else ""
        return f"{name.format('{0}')}{'None' if axis is None or axis < 0 else axis}{keep})"

    return written


def matmul(dtypes: list[DType]) -> Writer:
    """Writes a product of matrices."""

    def writer(draft: Draft) -> bool:
        dtype = draft.dtype(dtypes)
        first = draft.pick(lambda x: x.dtype is dtype and x.ndim in (1, 2, 3) and x.size > 0)
        if first is None:
            first = draft.leaf((2, 3), dtype)
        x = draft.tensors[first]
        inner = x.shape[-1]
        shape = draft.choice([(inner,), (inner, 2), (inner, 3)])
        second = _operand(draft, dtype, shape)
        return draft.add(
            Step("{0} @ {1}", (first, second), ("mul", "sum", "fused_multiply_add")), draft.chance(12)
        )

    return writer


def product_sum(dtypes: list[DType]) -> Writer:
    """Writes a sum of products, which a backend may fuse; alone, or beside another."""

    def writer(draft: Draft) -> bool:
        dtype = draft.dtype(dtypes)
        first = draft.pick(lambda x: x.dtype is dtype and x.ndim > 0 and x.size > 0)
        if first is None:
            first = draft.leaf((2, 3), dtype)
        x = draft.tensors[first]
        second = _beside(draft, x, dtype, (-2.0, 2.0), False)
        axis = draft.draw(x.ndim)
        third = _beside(draft, x, dtype, (-2.0, 2.0), False)
        options = [f"({{0}} * {{1}}).sum(-{axis + 1})", f"({{0}} * {{1}} - {{0}} * {{2}}).sum(-{axis + 1})"]
        options.append(f"({{0}} * {{1}}).sum(-{axis + 1}, keepdims=True) * {{2}}")
        which = draft.draw(3)
        places = (first, second, third)[: 2 if which == 0 else 3]
        return draft.add(
            Step(options[which], places, ("mul", "sum", "fused_multiply_add", "add", "sub")), draft.chance(12)
        )

    return writer


SPELLED: list[tuple[Callable[[Draft, Tensor], str | None], tuple[str, ...], str]] = [
    (_key, ("crop", "flip", "reshape"), "any"),
    (_key, ("crop", "flip", "reshape"), "any"),
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
"""What people write: the Python, the ops that it is about, and the kinds of numbers that it is for."""


def _of_kind(dtypes: list[DType], kind: str) -> list[DType]:
    kinds = {"any": ("bool", "int", "float"), "numeric": ("int", "float")}.get(kind, (kind,))
    order = ("float32", "int32", "float64", "bool", "float16", "int64")
    return sorted([d for d in dtypes if d.kind in kinds], key=lambda dtype: order.index(dtype.name))


def _writer_of(op: Op, dtypes: list[DType]) -> Writer:
    if op.elementwise:
        return elementwise(op, dtypes)
    if op.name in ("gather", "scatter_add"):
        return gather(op, dtypes)
    if op.name == "concatenate":
        return concatenate(op, dtypes)
    known = {"axis", "axes", "order", "pads", "limits", "dtype", "shape"}
    if op.arity == 1 and op.params and op.prepare is None and set(op.params) <= known and not op.mapped:
        return along_axes(op, dtypes)
    return from_sample(op, dtypes)


@cache
def _writers(declared: tuple[str, ...], unsupported: tuple[tuple[str, str], ...]) -> list[Writer]:
    """All writers for a backend, simple ones first."""
    capabilities = Capabilities(dtypes=declared, unsupported=dict(unsupported))
    dtypes = [dtype for name, dtype in DTYPES.items() if name in declared]
    writers: list[Writer] = []
    for written, ops, kind in SPELLED:
        if "cast" in ops and "int32" not in declared:
            continue
        usable = [
            d for d in _of_kind(dtypes, kind) if all(capabilities.why_not(op, d.name) is None for op in ops)
        ]
        if usable:
            writers.append(spelled(written, ops, usable))
    usable = [
        d
        for d in _of_kind(dtypes, "numeric")
        if all(capabilities.why_not(op, d.name) is None for op in ("mul", "sum", "add", "sub"))
    ]
    if usable:
        writers += [matmul(usable), product_sum(usable), product_sum(usable)]
    for op in OPS.values():
        on = _dtypes_of(op, declared, unsupported)
        if on and op.samples:
            writers += [_writer_of(op, on)] * (2 if op.name in OFTEN else 1)
    return writers
