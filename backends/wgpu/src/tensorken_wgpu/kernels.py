"""Kernels: the WGSL of one value of a program, with all that is computed on the way to it written into it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorken_wgpu.device import WORKGROUP
from tensorken_wgpu.functions import PRELUDE
from tensorken_wgpu.places import Place, variable
from tensorken_wgpu.points import Point, size_of
from tensorken_wgpu.wgsl import CASTS, MAX, OF_KIND, STORED, SUM, TYPES, number

if TYPE_CHECKING:
    from tensorken.programs.program import Equation, Variable


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


class Writer:
    """Writes the kernel of one value.

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
        size = size_of(v.shape)
        point = Point(v.shape, self._place, linear=variable("t", size))
        equation = self._makers[v]
        write = _WHOLE.get(equation.op.name)
        result = write(self, equation, point) if write else self._expression(v, point)
        stored = f"select(0u, 1u, {result})" if v.dtype.kind == "bool" else result
        bindings = ["@group(0) @binding(0) var<uniform> opaque: vec4<u32>;"]
        for i, (x, name) in enumerate(self._reads.items(), 1):
            kind = STORED[x.dtype.name]
            bindings.append(f"@group(0) @binding({i}) var<storage, read> {name}: array<{kind}>;")
        kind = STORED[v.dtype.name]
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

    @contextlib.contextmanager
    def _loop(self, name: str, start: str, end: str) -> Iterator[None]:
        """Lines that are run for each value of a variable; what they name is gone afterwards."""
        self._line(f"for (var {name} = {start}; {name} < {end}; {name}++) {{")
        known, indent = self._known.copy(), self._indent
        self._indent += "  "
        yield
        self._known, self._indent = known, indent
        self._line("}")

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

    def _reshape(self, equation: Equation, point: Point) -> str:
        (x,) = equation.operands
        return self._value(x, point.before_reshape(x.shape))

    def _permute(self, equation: Equation, point: Point) -> str:
        (x,), (order,) = equation.operands, equation.params
        return self._value(x, point.before_permute(x.shape, order))

    def _expand(self, equation: Equation, point: Point) -> str:
        (x,) = equation.operands
        return self._value(x, point.before_expand(x.shape))

    def _flip(self, equation: Equation, point: Point) -> str:
        (x,), (axes,) = equation.operands, equation.params
        return self._value(x, point.before_flip(axes))

    def _crop(self, equation: Equation, point: Point) -> str:
        (x,), (limits,) = equation.operands, equation.params
        return self._value(x, point.before_crop(x.shape, limits))

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

    def _fold(
        self, x: Variable, axes: Sequence[int], point: Point, start: str, how: Callable[..., str]
    ) -> str:
        """All elements of x along axes, one after another."""
        total = self._fresh()
        self._line(f"var {total}: {TYPES[x.dtype.name]} = {start};")
        indices = list(point.indices)
        with contextlib.ExitStack() as loops:
            for axis in axes:
                name = self._fresh()
                if x.shape[axis] != 1:
                    loops.enter_context(self._loop(name, "0u", f"{x.shape[axis]}u"))
                indices[axis] = variable(name, x.shape[axis])
            if 0 not in x.shape:
                value = self._value(x, point.at(x.shape, indices))
                self._line(f"{total} = {how(total, value)};")
        return total

    def _sum(self, equation: Equation, point: Point) -> str:
        (x,), (axes,) = equation.operands, equation.params
        return self._fold(x, axes, point, *SUM[x.dtype.kind])

    def _max(self, equation: Equation, point: Point) -> str:
        (x,), (axes,) = equation.operands, equation.params
        return self._fold(x, axes, point, *MAX[x.dtype.kind])

    def _scatter_add(self, equation: Equation, point: Point) -> str:
        """For each element of the result all that is added to it, in order."""
        (x, indices), (axis, _) = equation.operands, equation.params
        start, how = SUM[x.dtype.kind]
        total, name = self._fresh(), self._fresh()
        here = point.indices[axis]
        self._line(f"var {total}: {TYPES[x.dtype.name]} = {start};")
        count = indices.shape[0]
        if count and 0 not in x.shape:
            with self._loop(name, "0u", f"{count}u"):
                place = Place({name: 1}, 0, {name: count})
                index = self._value(indices, point.at(indices.shape, [place]))
                self._line(f"if (u32({index}) == {here}) {{")
                known, self._indent = self._known.copy(), self._indent + "  "
                inner = [*point.indices[:axis], place, *point.indices[axis + 1 :]]
                value = self._value(x, point.at(x.shape, inner))
                self._line(f"{total} = {how(total, value)};")
                self._known, self._indent = known, self._indent[:-2]
                self._line("}")
        return total


_INLINE: dict[str, Callable[[Writer, Equation, Point], str]] = {
    "cast": Writer._cast,
    "reshape": Writer._reshape,
    "permute": Writer._permute,
    "expand": Writer._expand,
    "flip": Writer._flip,
    "crop": Writer._crop,
    "pad": Writer._pad,
    "gather": Writer._gather,
}
_WHOLE: dict[str, Callable[[Writer, Equation, Point], str]] = {
    "sum": Writer._sum,
    "max": Writer._max,
    "scatter_add": Writer._scatter_add,
}
INLINE = frozenset(_INLINE)
WHOLE = frozenset(_WHOLE)
