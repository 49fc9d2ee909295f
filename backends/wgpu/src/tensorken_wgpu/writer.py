"""Writer: writes values of a program as WGSL, each at a point, with all that they are computed from written into it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any

from tensorken_wgpu.dtypes import SIZES, size_of
from tensorken_wgpu.places import Place, variable
from tensorken_wgpu.points import Point
from tensorken_wgpu.templates import element, whole
from tensorken_wgpu.wgsl import CASTS, STORED, TYPES, as_place, bits_of, loaded, stored, texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorken_core.language.dtypes import DType
    from tensorken_core.program.program import Equation, Variable
    from tensorken_wgpu.target import Target
    from tensorken_wgpu.vectors import Vector


class NotHere(Exception):
    """A value that this kernel computes is needed at a point where it does not."""


class Writer:
    """Writes one kernel.

    Args:
        makers: for each value that is computed the equation that does that.
        kept: the values that lie in memory, before this kernel or after it.
        own: those of them that this kernel computes.
        vectors: as what neighbours are read and written at once, of values for which that is so.
        target: where the kernel is to run; None if all values are small.

    Attributes:
        makers: see above.
        lines: what has been written.
        reads: the values read from memory, and what the text calls them.
        writes: the same of those that are written.
        loads: at which places of each value that is read from memory.
        unfit: what cannot be read or written as those vectors.
        homes: for each value that this kernel computes at which places it does so at the moment.
    """

    def __init__(
        self,
        makers: Mapping[Variable, Equation],
        kept: Collection[Variable],
        own: frozenset[Variable],
        vectors: Mapping[Variable, Vector] | None = None,
        target: Target | None = None,
    ) -> None:
        self.makers = makers
        self.lines: list[str] = []
        self.reads: dict[Variable, str] = {}
        self.writes: dict[Variable, str] = {}
        self.loads: dict[Variable, set[tuple[object, ...]]] = {}
        self.unfit: set[Variable] = set()
        self.homes: dict[Variable, set[tuple[object, ...]]] = {}
        self._kept = kept
        self._own = own
        self._target = target
        self.vectors = vectors or {}
        self._indent = "  "
        self._known: dict[object, str] = {}
        self._count = 0

    def goes_on(self) -> Writer:
        """Another one that has written the same so far."""
        other = copy(self)
        other.lines, other.reads, other.writes = self.lines.copy(), self.reads.copy(), self.writes.copy()
        other.loads = {v: places.copy() for v, places in self.loads.items()}
        other.unfit, other._known = self.unfit.copy(), self._known.copy()
        return other

    # ---- lines ---------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """One more."""
        self.lines.append(self._indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """What is written meanwhile stands in braces after this; the names that it is given are gone afterwards."""
        known, indent = self._known.copy(), self._indent
        self.line(head + " {")
        self._indent += "  "
        yield
        self._known, self._indent = known, indent
        self.line("}")

    def fresh(self) -> str:
        """A name that nothing has."""
        self._count += 1
        return f"v{self._count}"

    def named(self, key: object, text: str) -> str:
        """The name of an expression, which is written once where it is in sight."""
        name = self._known.get(key)
        if name is None:
            name = self._known[key] = self.fresh()
            self.line(f"let {name} = {text};")
        return name

    def place(self, text: str, size: int) -> Place:
        """A place of so many values, which has a name from now on."""
        return variable(self.named(text, text), size)

    def point(self, shape: Sequence[int], linear: Place) -> Point:
        """The point at a place of a shape's row-major elements."""
        return Point(shape, self.place, linear=linear)

    # ---- values --------------------------------------------------------------------------------------------

    def at_home(self, places: Mapping[Variable, Collection[Place]]) -> None:
        """From here on the kernel computes these values at these places of their row-major elements."""
        self.homes = {v: {place.key for place in found} for v, found in places.items()}

    def takes_over(self, v: Variable, place: Place) -> None:
        """This kernel computes a value, too, which follows from what it has computed so far, at this place."""
        self._own = self._own | {v}
        self.homes = {**self.homes, v: {place.key}}

    def know(self, v: Variable, place: Place, name: str) -> None:
        """An element has been computed, and has this name."""
        self._known[id(v), place.key] = name

    def value(self, v: Variable, point: Point) -> str:
        """The name of an element, or the number that it is.

        Raises:
            NotHere: if this kernel computes it, at another point.
        """
        number = getattr(v, "value", None)
        if number is not None:
            return constant(number, v.dtype)
        key = id(v), point.key
        name = self._known.get(key)
        if name is None:
            name = self._known[key] = self._name_of(self._text(v, point), v.dtype)
        return name

    def values(self, v: Variable, points: Sequence[Point]) -> list[str]:
        """The same for several elements, op by op: a processor computes at once what stands near and is independent.

        Raises:
            NotHere: as for `value`.
        """
        if len(points) == 1:  # as nearly always
            return [self.value(v, points[0])]
        value = getattr(v, "value", None)
        if value is not None:
            return [constant(value, v.dtype)] * len(points)
        known = self._known
        keys = [(id(v), point.key) for point in points]
        missing = {key: point for key, point in zip(keys, points, strict=True) if key not in known}
        if missing:
            for key, text in zip(missing, self._texts(v, [*missing.values()]), strict=True):
                known[key] = self._name_of(text, v.dtype)
        return [known[key] for key in keys]

    def _name_of(self, text: str, dtype: DType) -> str:
        """The name of an element that is written so; a line of its own, if that is no name yet."""
        if text.isidentifier():
            return text
        name = self.fresh()
        self.lines.append(f"{self._indent}let {name}: {TYPES[dtype.name]} = {text};")
        return name

    def _text(self, v: Variable, point: Point) -> str:
        """What reads or computes an element."""
        if self._is_read(v, (point,)):
            return self._load(v, point.linear)
        equation = self.makers[v]
        write = _INLINE.get(equation.op.name)
        if write is not None:
            return write(self, equation, (point,))[0]
        operands = equation.operands
        return texts(operands[-1].dtype.name)[equation.op.name](*[self.value(x, point) for x in operands])

    def _texts(self, v: Variable, points: Sequence[Point]) -> list[str]:
        """The same for several."""
        if self._is_read(v, points):
            return [self._load(v, point.linear) for point in points]
        equation = self.makers[v]
        write = _INLINE.get(equation.op.name)
        if write is not None:
            return write(self, equation, points)
        operands = equation.operands
        text = texts(operands[-1].dtype.name)[equation.op.name]
        columns = [self.values(x, points) for x in operands]
        return [text(*row) for row in zip(*columns, strict=True)]

    def _is_read(self, v: Variable, points: Sequence[Point]) -> bool:
        """Whether a value is read from memory at these points, as is noted then, and not computed here."""
        if v in self._own:
            homes = self.homes.get(v, ())
            if any([point.key not in homes for point in points]):
                raise NotHere
            return False
        if v not in self._kept:
            return False
        self.loads.setdefault(v, set()).update([point.key for point in points])
        return True

    # ---- memory --------------------------------------------------------------------------------------------

    def _load(self, v: Variable, place: Place) -> str:
        name = self.reads.setdefault(v, f"x{len(self.reads)}")
        dtype = v.dtype.name
        vector = self.vectors.get(v)
        if vector is None:
            return loaded(dtype, self._at(v, name, place))
        start, i = self._aligned(v, vector, place)
        whole = self.named((name, start.key), self._at(v, name, start))
        return loaded(dtype, vector.element(whole, i))

    def _aligned(self, v: Variable, vector: Vector, place: Place) -> tuple[Place, int]:
        """Which vector an element is in, and where there; if that differs, it is noted that v has no such vectors."""
        if any([f % vector.size for f in place.terms.values()]):
            self.unfit.add(v)
            return place, 0
        return place.over(vector.size), place.constant % vector.size

    def store(self, v: Variable, elements: Sequence[tuple[Place, str]]) -> None:
        """Write elements, which are one or neighbours, to memory."""
        name = self.writes.setdefault(v, f"y{len(self.writes)}")
        dtype = v.dtype.name
        vector = self.vectors.get(v)
        size = vector.size if vector else 1
        for i in range(0, len(elements), size):
            places = [place for place, _ in elements[i : i + size]]
            values = [stored(dtype, value) for _, value in elements[i : i + size]]
            if vector is None:
                self._put(v, name, places[0], values[0])
                continue
            start, first = self._aligned(v, vector, places[0])
            if first or [place.key for place in places] != [places[0].plus(j).key for j in range(size)]:
                self.unfit.add(v)
            else:
                self._put(v, name, start, vector.whole(values))

    def _put(self, v: Variable, name: str, place: Place, value: str) -> None:
        one = len(self.windows(v)) == 1
        self.line(f"{name}[{place}] = {value};" if one else f"{name}({place}, {value});")

    def _at(self, v: Variable, name: str, place: Place) -> str:
        return f"{name}[{place}]" if len(self.windows(v)) == 1 else f"{name}({place})"

    def windows(self, v: Variable) -> list[tuple[int, int]]:
        """The parts that a value is bound in, as `Target.windows` has them."""
        size = size_of(v)
        return [(0, size)] if self._target is None else self._target.windows(size)

    def declarations(self) -> list[str]:
        """The bindings of what is read and written, after the first one."""
        lines: list[str] = []
        place = 0
        for access, names in (("read", self.reads), ("read_write", self.writes)):
            for v, name in names.items():
                vector = self.vectors.get(v)
                kind, elements = (vector.type, vector.size) if vector else (STORED[v.dtype.name], 1)
                windows = self.windows(v)
                parts = [name] if len(windows) == 1 else [f"{name}_{i}" for i in range(len(windows))]
                for part in parts:
                    place += 1
                    lines.append(f"@group(0) @binding({place}) var<storage, {access}> {part}: array<{kind}>;")
                if len(parts) > 1:
                    starts = [start // SIZES[v.dtype.name] // elements for start, _ in windows]
                    lines += (_reading if access == "read" else _writing)(name, kind, parts, starts)
        return lines

    # ---- ops -----------------------------------------------------------------------------------------------

    def _cast(self, equation: Equation, points: Sequence[Point]) -> list[str]:
        (x,), (v,) = equation.operands, equation.results
        values = self.values(x, points)
        return [*map(CASTS[x.dtype.name, v.dtype.name], values)] if x.dtype is not v.dtype else values

    def _moved(self, equation: Equation, points: Sequence[Point]) -> list[str]:
        (x,), before = equation.operands, _BEFORE[equation.op.name]
        return self.values(x, [before(point, x.shape, *equation.params) for point in points])

    def _pad(self, equation: Equation, points: Sequence[Point]) -> list[str]:
        (x,), (pads,) = equation.operands, equation.params
        nothing = constant(0, x.dtype)
        if 0 in x.shape:
            return [nothing] * len(points)
        inner = [point.before_pad(x.shape, pads) for point in points]
        values = self.values(x, [point for point, _ in inner])
        return [
            f"select({nothing}, {value}, {' && '.join(conditions)})" if conditions else value
            for value, (_, conditions) in zip(values, inner, strict=True)
        ]

    def _gather(self, equation: Equation, points: Sequence[Point]) -> list[str]:
        (x, indices), (axis,) = equation.operands, equation.params
        before = [point.indices for point in points]
        found = self.values(
            indices,
            [point.at(indices.shape, [place[axis]]) for point, place in zip(points, before, strict=True)],
        )
        size, found = x.shape[axis], [as_place(indices.dtype.name, index) for index in found]
        inner = [
            point.at(x.shape, [*place[:axis], self.place(index, size), *place[axis + 1 :]])
            for point, place, index in zip(points, before, found, strict=True)
        ]
        nothing = constant(0, x.dtype)
        return [
            f"select({nothing}, {value}, {index} < {whole(size)})"
            for value, index in zip(self.values(x, inner), found, strict=True)
        ]


def _reading(name: str, kind: str, parts: list[str], starts: list[int]) -> list[str]:
    """What reads an element of a value that is bound in parts."""
    cases = [
        f"  if (i >= {start}u) {{ return {part}[i - {start}u]; }}"
        for part, start in zip(parts, starts, strict=True)
    ]
    return [f"fn {name}(i: u32) -> {kind} {{", *reversed(cases[1:]), f"  return {parts[0]}[i];", "}"]


def _writing(name: str, kind: str, parts: list[str], starts: list[int]) -> list[str]:
    """What writes one."""
    cases = [
        f"  if (i >= {start}u) {{ {part}[i - {start}u] = value; return; }}"
        for part, start in zip(parts, starts, strict=True)
    ]
    return [f"fn {name}(i: u32, value: {kind}) {{", *reversed(cases[1:]), f"  {parts[0]}[i] = value;", "}"]


def constant(value: Any, dtype: DType) -> str:
    """A number that stands in a program."""
    if dtype.kind == "bool":
        return "true" if value else "false"
    return element(TYPES[dtype.name], bits_of(value, dtype))


_BEFORE: dict[str, Callable[..., Point]] = {
    "reshape": lambda point, shape, _: point.before_reshape(shape),
    "permute": lambda point, shape, order: point.before_permute(shape, order),
    "expand": lambda point, shape, _: point.before_expand(shape),
    "flip": lambda point, _, axes: point.before_flip(axes),
    "crop": lambda point, shape, limits: point.before_crop(shape, limits),
}
"""From the point of a result to that in the operand, which has a shape."""

_INLINE: dict[str, Callable[[Writer, Equation, Sequence[Point]], list[str]]] = {
    "cast": Writer._cast,
    **dict.fromkeys(_BEFORE, Writer._moved),
    "pad": Writer._pad,
    "gather": Writer._gather,
}
INLINE = frozenset(_INLINE)
MOVES = INLINE - {"cast"}
FOLDS = frozenset({"sum", "max", "scatter_add", "fused_multiply_add"})
"""Ops of which each element is made of many."""
