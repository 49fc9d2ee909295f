"""Kernels: the WGSL of one value of a program, with all that is computed on the way to it written into it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from tensorken_wgpu.device import WORKGROUP
from tensorken_wgpu.functions import PRELUDE
from tensorken_wgpu.places import Place, fixed, variable
from tensorken_wgpu.points import Point
from tensorken_wgpu.wgsl import CASTS, MAX, OF_KIND, STORED, SUM, TYPES, number

if TYPE_CHECKING:
    from tensorken.programs.program import Equation, Variable
    from tensorken.spec.dtypes import DType


TURNS = 4096
"""How many elements one invocation adds up at most; what is longer is added up in parts, and then these.

Mesa's driver in software ends a kernel's loops, silently, after 65 535 turns in all.
"""


@dataclass(frozen=True, slots=True)
class Kernel:
    """What computes a value.

    Attributes:
        text: in WGSL.
        count: of invocations.
        reads: the values that it takes from memory, in the order of its bindings.
    """

    text: str
    count: int
    reads: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Fold:
    """Many elements that become one.

    Attributes:
        count: how many.
        start: what no elements are.
        how: from what there is so far, and an element, to what there is then.
        element: writes what gives the element of a number.
        dtype: its name.
    """

    count: int
    start: str
    how: Callable[[str, str], str]
    element: Callable[[Place], str]
    dtype: str


class Writer:
    """Writes a kernel of one value.

    Args:
        makers: for each value that is computed the equation that does that.
        kept: the values that lie in memory.
    """

    def __init__(self, makers: Mapping[Variable, Equation], kept: set[Variable]) -> None:
        self._makers = makers
        self._kept = kept
        self._reads: dict[Variable, str] = {}
        self._lines: list[str] = []
        self._indent = "  "
        self._known: dict[object, str] = {}
        self._count = 0

    # ---- the whole -----------------------------------------------------------------------------------------

    def kernel(self, v: Variable) -> Kernel:
        """What computes a value that is to lie in memory; there is one invocation for each element."""
        size = prod(v.shape)
        point = Point(v.shape, self._place, linear=variable("t", size))
        equation = self._makers[v]
        if equation.op.name in WHOLE:
            fold = _FOLDS[equation.op.name](self, equation, point)
            result = self._folded(fold, fixed(0), fold.count)
        else:
            result = self._expression(v, point)
        return self._finished(v.dtype, size, result)

    def turns(self, v: Variable) -> int:
        """How many elements are folded into each element of a value; 0 if it is no fold."""
        equation = self._makers[v]
        if equation.op.name not in WHOLE:
            return 0
        return _FOLDS[equation.op.name](self, equation, Point(v.shape, self._place, linear=fixed(0))).count

    def part(self, v: Variable, parts: int) -> Kernel:
        """What folds one part after the other of a long fold: for each element of v so many numbers."""
        size = prod(v.shape)
        part, element = variable("t", size * parts).divided(size, self._place)
        point = Point(v.shape, self._place, linear=element)
        equation = self._makers[v]
        fold = _FOLDS[equation.op.name](self, equation, point)
        result = self._folded(fold, part.times(TURNS), TURNS)
        return self._finished(v.dtype, size * parts, result)

    def of_parts(self, v: Variable, part: Variable, parts: int) -> Kernel:
        """What folds the parts."""
        size = prod(v.shape)
        start, how = _HOW[self._makers[v].op.name][v.dtype.kind]
        here = variable("t", size)

        def element(i: Place) -> str:
            return self._load(part, Point(part.shape, self._place, linear=i.times(size) + here))

        result = self._folded(Fold(parts, start, how, element, v.dtype.name), fixed(0), parts)
        return self._finished(v.dtype, size, result)

    def _finished(self, dtype: DType, size: int, result: str) -> Kernel:
        """The text around the lines that have been written."""
        stored = f"select(0u, 1u, {result})" if dtype.kind == "bool" else result
        bindings = ["@group(0) @binding(0) var<uniform> opaque: vec4<u32>;"]
        for i, (x, name) in enumerate(self._reads.items(), 1):
            kind = STORED[x.dtype.name]
            bindings.append(f"@group(0) @binding({i}) var<storage, read> {name}: array<{kind}>;")
        kind = STORED[dtype.name]
        place = len(self._reads) + 1
        bindings.append(f"@group(0) @binding({place}) var<storage, read_write> result: array<{kind}>;")
        text = "\n".join(
            [
                *bindings,
                PRELUDE,
                f"@compute @workgroup_size({WORKGROUP})",
                "fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) n: vec3<u32>) {",
                f"  let t = g.x + g.y * n.x * {WORKGROUP}u;",
                f"  if (t >= {size}u) {{ return; }}",
                *self._lines,
                f"  result[t] = {stored};",
                "}",
            ]
        )
        return Kernel(text, size, tuple(self._reads))

    # ---- lines ---------------------------------------------------------------------------------------------

    def _line(self, text: str) -> None:
        self._lines.append(self._indent + text)

    def _fresh(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def _named(self, key: object, text: str) -> str:
        """The name of an expression, which is written once where it is in sight."""
        name = self._known.get(key)
        if name is None:
            name = self._known[key] = self._fresh()
            self._line(f"let {name} = {text};")
        return name

    def _place(self, text: str, size: int) -> Place:
        return variable(self._named(text, text), size)

    def _folded(self, fold: Fold, first: Place, count: int) -> str:
        """The name of what so many elements, from the first on, are folded into."""
        total, i = self._fresh(), self._fresh()
        self._line(f"var {total}: {TYPES[fold.dtype]} = {fold.start};")
        if not count:
            return total
        known, indent = self._known.copy(), self._indent
        self._line(f"for (var {i} = 0u; {i} < {count}u; {i}++) {{")
        self._indent += "  "
        place = first + Place({i: 1}, 0, {i: count})
        if place.end is None or place.end > fold.count:
            name = self._fresh()
            self._line(f"let {name} = {place};")
            self._line(f"if ({name} >= {fold.count}u) {{ break; }}")
            place = Place({name: 1}, 0, {name: fold.count})
        value = fold.element(place)
        self._line(f"{total} = {fold.how(total, value)};")
        self._known, self._indent = known, indent
        self._line("}")
        return total

    # ---- values --------------------------------------------------------------------------------------------

    def _value(self, v: Variable, point: Point) -> str:
        """The name of an element, or the number that it is."""
        value = getattr(v, "value", None)
        if value is not None:
            return number(value, v.dtype)
        key = (id(v), point.key)
        name = self._known.get(key)
        if name is None:
            text = self._load(v, point) if v in self._kept else self._expression(v, point)
            name = self._known[key] = self._fresh()
            self._line(f"let {name}: {TYPES[v.dtype.name]} = {text};")
        return name

    def _load(self, v: Variable, point: Point) -> str:
        name = self._reads.setdefault(v, f"x{len(self._reads)}")
        text = f"{name}[{point.linear}]"
        return f"{text} != 0u" if v.dtype.kind == "bool" else text

    def _expression(self, v: Variable, point: Point) -> str:
        equation = self._makers[v]
        write = _INLINE.get(equation.op.name)
        if write is not None:
            return write(self, equation, point)
        operands = equation.operands
        texts = OF_KIND[operands[-1].dtype.kind]
        return texts[equation.op.name](*[self._value(x, point) for x in operands])

    # ---- ops -----------------------------------------------------------------------------------------------

    def _cast(self, equation: Equation, point: Point) -> str:
        (x,), (v,) = equation.operands, equation.results
        value = self._value(x, point)
        return CASTS[x.dtype.name, v.dtype.name](value) if x.dtype is not v.dtype else value

    def _moved(self, equation: Equation, point: Point) -> str:
        (x,) = equation.operands
        return self._value(x, _BEFORE[equation.op.name](point, x.shape, *equation.params))

    def _pad(self, equation: Equation, point: Point) -> str:
        (x,), (pads,) = equation.operands, equation.params
        nothing = number(0, x.dtype)
        if 0 in x.shape:
            return nothing
        inner, conditions = point.before_pad(x.shape, pads)
        value = self._value(x, inner)
        return f"select({nothing}, {value}, {' && '.join(conditions)})" if conditions else value

    def _gather(self, equation: Equation, point: Point) -> str:
        (x, indices), (axis,) = equation.operands, equation.params
        before = point.indices
        index = self._value(indices, point.at(indices.shape, [before[axis]]))
        size = x.shape[axis]
        found = self._place(f"u32({index})", size)
        inner = point.at(x.shape, [*before[:axis], found, *before[axis + 1 :]])
        return f"select({number(0, x.dtype)}, {self._value(x, inner)}, {index} >= 0 && {index} < {size})"

    def _reduction(self, equation: Equation, point: Point) -> Fold:
        """Of all elements along axes."""
        (x,), (axes,) = equation.operands, equation.params
        start, how = _HOW[equation.op.name][x.dtype.kind]
        inner = tuple([x.shape[axis] for axis in axes])

        def element(i: Place) -> str:
            indices = list(point.indices)
            for axis, index in zip(axes, Point(inner, self._place, linear=i).indices, strict=True):
                indices[axis] = index
            return self._value(x, point.at(x.shape, indices))

        return Fold(prod(inner), start, how, element, x.dtype.name)

    def _scatter(self, equation: Equation, point: Point) -> Fold:
        """For each element of the result of all that is added to it, in order."""
        (x, indices), (axis, _) = equation.operands, equation.params
        start, how = SUM[x.dtype.kind]

        def element(i: Place) -> str:
            index = self._value(indices, point.at(indices.shape, [i]))
            value = self._value(x, point.at(x.shape, [*point.indices[:axis], i, *point.indices[axis + 1 :]]))
            return f"select({start}, {value}, u32({index}) == {point.indices[axis]})"

        return Fold(indices.shape[0] if prod(x.shape) else 0, start, how, element, x.dtype.name)


_BEFORE: dict[str, Callable[..., Point]] = {
    "reshape": lambda point, shape, _: point.before_reshape(shape),
    "permute": lambda point, shape, order: point.before_permute(shape, order),
    "expand": lambda point, shape, _: point.before_expand(shape),
    "flip": lambda point, _, axes: point.before_flip(axes),
    "crop": lambda point, shape, limits: point.before_crop(shape, limits),
}
"""From the point of a result to that in the operand, which has a shape."""

_INLINE: dict[str, Callable[[Writer, Equation, Point], str]] = {
    "cast": Writer._cast,
    **dict.fromkeys(_BEFORE, Writer._moved),
    "pad": Writer._pad,
    "gather": Writer._gather,
}
_FOLDS: dict[str, Callable[[Writer, Equation, Point], Fold]] = {
    "sum": Writer._reduction,
    "max": Writer._reduction,
    "scatter_add": Writer._scatter,
}
_HOW = {"sum": SUM, "max": MAX, "scatter_add": SUM}
INLINE = frozenset(_INLINE)
WHOLE = frozenset(_FOLDS)
