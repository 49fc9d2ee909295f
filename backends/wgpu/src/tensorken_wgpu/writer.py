"""Writer: writes elements of values as WGSL, together with everything they are computed from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any

from tensorken_wgpu.dtypes import SIZES, size_of
from tensorken_wgpu.element_indices import ElementIndex
from tensorken_wgpu.index_expressions import IndexExpression, variable
from tensorken_wgpu.templates import integer, number
from tensorken_wgpu.wgsl import CASTS, STORED, TYPES, as_index, bits_of, expressions, loaded, stored

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorken_core.language.dtypes import DType
    from tensorken_core.program.program import Equation, Variable
    from tensorken_wgpu.target import Target
    from tensorken_wgpu.vectors import Vector


class NotComputedHere(Exception):
    """A value of this kernel is needed at an element that the current invocation does not compute."""


class Writer:
    """Writes one kernel.

    Args:
        producers: for each computed value its equation.
        kept: the values in memory, before or after this kernel.
        own: those of them that this kernel computes.
        vectors: the vectors in which values are read and written, for values that have some.
        target: the device; None if all values are small.

    Attributes:
        producers: see above.
        lines: the text so far.
        reads: the values read from memory, and their names in the text.
        writes: the values written to memory, and their names.
        loads: for each value read from memory the element indices.
        unaligned: values that cannot be read or written in their vectors, as accesses are not aligned.
        current: for each value that this kernel computes the element indices that it currently computes.
    """

    def __init__(
        self,
        producers: Mapping[Variable, Equation],
        kept: Collection[Variable],
        computed: frozenset[Variable],
        vectors: Mapping[Variable, Vector] | None = None,
        target: Target | None = None,
    ) -> None:
        self.producers = producers
        self.lines: list[str] = []
        self.reads: dict[Variable, str] = {}
        self.writes: dict[Variable, str] = {}
        self.loads: dict[Variable, set[tuple[object, ...]]] = {}
        self.unaligned: set[Variable] = set()
        self.current: dict[Variable, set[tuple[object, ...]]] = {}
        self._kept = kept
        self._computed = computed
        self._target = target
        self.vectors = vectors or {}
        self._indent = "  "
        self._names: dict[object, str] = {}
        self._count = 0

    def copy_state(self) -> Writer:
        """A copy that has written the same so far."""
        other = copy(self)
        other.lines, other.reads, other.writes = self.lines.copy(), self.reads.copy(), self.writes.copy()
        other.loads = {v: indices.copy() for v, indices in self.loads.items()}
        other.unaligned, other._names = self.unaligned.copy(), self._names.copy()
        return other

    # ---- lines ---------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append(self._indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Put the lines written meanwhile in braces after the head; their names are out of scope afterwards."""
        names, indent = self._names.copy(), self._indent
        self.line(head + " {")
        self._indent += "  "
        yield
        self._names, self._indent = names, indent
        self.line("}")

    def new_name(self) -> str:
        """An unused name."""
        self._count += 1
        return f"v{self._count}"

    def named(self, key: object, text: str) -> str:
        """The name of an expression, which is written once per scope."""
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = self.new_name()
            self.line(f"let {name} = {text};")
        return name

    def index(self, text: str, size: int) -> IndexExpression:
        """A named index expression with this many values."""
        return variable(self.named(text, text), size)

    def element(self, shape: Sequence[int], linear: IndexExpression) -> ElementIndex:
        """The element with this row-major index."""
        return ElementIndex(shape, self.index, linear=linear)

    # ---- values --------------------------------------------------------------------------------------------

    def set_current(self, indices: Mapping[Variable, Collection[IndexExpression]]) -> None:
        """From here on the kernel computes these values at these row-major indices."""
        self.current = {v: {index.key for index in found} for v, found in indices.items()}

    def include(self, v: Variable, index: IndexExpression) -> None:
        """Let the kernel compute another value, at this row-major index, from values it has computed."""
        self._computed = self._computed | {v}
        self.current = {**self.current, v: {index.key}}

    def define(self, v: Variable, index: IndexExpression, name: str) -> None:
        """Register the name of a computed element."""
        self._names[id(v), index.key] = name

    def value(self, v: Variable, element: ElementIndex) -> str:
        """The name of an element, or a literal.

        Raises:
            NotComputedHere: if this kernel computes the value, but not this element.
        """
        number = getattr(v, "value", None)
        if number is not None:
            return constant(number, v.dtype)
        key = id(v), element.key
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = self._name_of(self._text(v, element), v.dtype)
        return name

    def values(self, v: Variable, elements: Sequence[ElementIndex]) -> list[str]:
        """The names of several elements, op by op: processors overlap independent instructions that are close.

        Raises:
            NotComputedHere: as for `value`.
        """
        if len(elements) == 1:  # the usual case
            return [self.value(v, elements[0])]
        value = getattr(v, "value", None)
        if value is not None:
            return [constant(value, v.dtype)] * len(elements)
        names = self._names
        keys = [(id(v), element.key) for element in elements]
        missing = {key: element for key, element in zip(keys, elements, strict=True) if key not in names}
        if missing:
            for key, text in zip(missing, self._texts(v, [*missing.values()]), strict=True):
                names[key] = self._name_of(text, v.dtype)
        return [names[key] for key in keys]

    def _name_of(self, text: str, dtype: DType) -> str:
        """The name of an element with this text, assigned on a line of its own unless it is a name."""
        if text.isidentifier():
            return text
        name = self.new_name()
        self.lines.append(f"{self._indent}let {name}: {TYPES[dtype.name]} = {text};")
        return name

    def _text(self, v: Variable, element: ElementIndex) -> str:
        """The expression that reads or computes an element."""
        if self._is_read(v, (element,)):
            return self._load(v, element.linear)
        equation = self.producers[v]
        write = _INLINE.get(equation.op.name)
        if write is not None:
            return write(self, equation, (element,))[0]
        operands = equation.operands
        return expressions(operands[-1].dtype.name)[equation.op.name](
            *[self.value(x, element) for x in operands]
        )

    def _texts(self, v: Variable, elements: Sequence[ElementIndex]) -> list[str]:
        """The expressions of several elements."""
        if self._is_read(v, elements):
            return [self._load(v, element.linear) for element in elements]
        equation = self.producers[v]
        write = _INLINE.get(equation.op.name)
        if write is not None:
            return write(self, equation, elements)
        operands = equation.operands
        text = expressions(operands[-1].dtype.name)[equation.op.name]
        columns = [self.values(x, elements) for x in operands]
        return [text(*row) for row in zip(*columns, strict=True)]

    def _is_read(self, v: Variable, elements: Sequence[ElementIndex]) -> bool:
        """Whether a value is read from memory at these elements, and not computed here; reads are recorded."""
        if v in self._computed:
            current = self.current.get(v, ())
            if any([element.key not in current for element in elements]):
                raise NotComputedHere
            return False
        if v not in self._kept:
            return False
        self.loads.setdefault(v, set()).update([element.key for element in elements])
        return True

    # ---- memory --------------------------------------------------------------------------------------------

    def _load(self, v: Variable, index: IndexExpression) -> str:
        name = self.reads.setdefault(v, f"x{len(self.reads)}")
        dtype = v.dtype.name
        vector = self.vectors.get(v)
        if vector is None:
            return loaded(dtype, self._access(v, name, index))
        start, i = self._aligned(v, vector, index)
        loaded_vector = self.named((name, start.key), self._access(v, name, start))
        return loaded(dtype, vector.element(loaded_vector, i))

    def _aligned(self, v: Variable, vector: Vector, index: IndexExpression) -> tuple[IndexExpression, int]:
        """The index of an element's vector, and its index within; unaligned accesses are recorded in `unaligned`."""
        if any([f % vector.size for f in index.terms.values()]):
            self.unaligned.add(v)
            return index, 0
        return index.over(vector.size), index.constant % vector.size

    def store(self, v: Variable, elements: Sequence[tuple[IndexExpression, str]]) -> None:
        """Write one element or neighbouring elements to memory."""
        name = self.writes.setdefault(v, f"y{len(self.writes)}")
        dtype = v.dtype.name
        vector = self.vectors.get(v)
        size = vector.size if vector else 1
        for i in range(0, len(elements), size):
            indices = [index for index, _ in elements[i : i + size]]
            values = [stored(dtype, value) for _, value in elements[i : i + size]]
            if vector is None:
                self._put(v, name, indices[0], values[0])
                continue
            start, first = self._aligned(v, vector, indices[0])
            if first or [index.key for index in indices] != [indices[0].plus(j).key for j in range(size)]:
                self.unaligned.add(v)
            else:
                self._put(v, name, start, vector.joined(values))

    def _put(self, v: Variable, name: str, index: IndexExpression, value: str) -> None:
        one = len(self.windows(v)) == 1
        self.line(f"{name}[{index}] = {value};" if one else f"{name}({index}, {value});")

    def _access(self, v: Variable, name: str, index: IndexExpression) -> str:
        return f"{name}[{index}]" if len(self.windows(v)) == 1 else f"{name}({index})"

    def windows(self, v: Variable) -> list[tuple[int, int]]:
        """The windows in which a value is bound, see `Target.windows`."""
        size = size_of(v)
        return [(0, size)] if self._target is None else self._target.windows(size)

    def declarations(self) -> list[str]:
        """The bindings of values read and written, after binding 0."""
        lines: list[str] = []
        binding = 0
        for access, names in (("read", self.reads), ("read_write", self.writes)):
            for v, name in names.items():
                vector = self.vectors.get(v)
                type_name, elements = (vector.type, vector.size) if vector else (STORED[v.dtype.name], 1)
                windows = self.windows(v)
                parts = [name] if len(windows) == 1 else [f"{name}_{i}" for i in range(len(windows))]
                for part in parts:
                    binding += 1
                    lines.append(
                        f"@group(0) @binding({binding}) var<storage, {access}> {part}: array<{type_name}>;"
                    )
                if len(parts) > 1:
                    starts = [start // SIZES[v.dtype.name] // elements for start, _ in windows]
                    lines += (_reading if access == "read" else _writing)(name, type_name, parts, starts)
        return lines

    # ---- ops -----------------------------------------------------------------------------------------------

    def _cast(self, equation: Equation, elements: Sequence[ElementIndex]) -> list[str]:
        (x,), (v,) = equation.operands, equation.results
        values = self.values(x, elements)
        return [*map(CASTS[x.dtype.name, v.dtype.name], values)] if x.dtype is not v.dtype else values

    def _moved(self, equation: Equation, elements: Sequence[ElementIndex]) -> list[str]:
        (x,), indices_before = equation.operands, _BEFORE[equation.op.name]
        return self.values(x, [indices_before(element, x.shape, *equation.params) for element in elements])

    def _pad(self, equation: Equation, elements: Sequence[ElementIndex]) -> list[str]:
        (x,), (pads,) = equation.operands, equation.params
        zero = constant(0, x.dtype)
        if 0 in x.shape:
            return [zero] * len(elements)
        operand_elements = [element.before_pad(x.shape, pads) for element in elements]
        values = self.values(x, [element for element, _ in operand_elements])
        return [
            f"select({zero}, {value}, {' && '.join(conditions)})" if conditions else value
            for value, (_, conditions) in zip(values, operand_elements, strict=True)
        ]

    def _gather(self, equation: Equation, elements: Sequence[ElementIndex]) -> list[str]:
        (x, indices), (axis,) = equation.operands, equation.params
        indices_before = [element.indices for element in elements]
        found = self.values(
            indices,
            [
                element.of_array(indices.shape, [axes[axis]])
                for element, axes in zip(elements, indices_before, strict=True)
            ],
        )
        size, found = x.shape[axis], [as_index(indices.dtype.name, index) for index in found]
        operand_elements = [
            element.of_array(x.shape, [*axes[:axis], self.index(index, size), *axes[axis + 1 :]])
            for element, axes, index in zip(elements, indices_before, found, strict=True)
        ]
        zero = constant(0, x.dtype)
        return [
            f"select({zero}, {value}, {index} < {integer(size)})"
            for value, index in zip(self.values(x, operand_elements), found, strict=True)
        ]


def _reading(name: str, type_name: str, parts: list[str], starts: list[int]) -> list[str]:
    """The function that reads an element of a value bound in several windows."""
    cases = [
        f"  if (i >= {start}u) {{ return {part}[i - {start}u]; }}"
        for part, start in zip(parts, starts, strict=True)
    ]
    return [f"fn {name}(i: u32) -> {type_name} {{", *reversed(cases[1:]), f"  return {parts[0]}[i];", "}"]


def _writing(name: str, type_name: str, parts: list[str], starts: list[int]) -> list[str]:
    """The function that writes one."""
    cases = [
        f"  if (i >= {start}u) {{ {part}[i - {start}u] = value; return; }}"
        for part, start in zip(parts, starts, strict=True)
    ]
    return [
        f"fn {name}(i: u32, value: {type_name}) {{",
        *reversed(cases[1:]),
        f"  {parts[0]}[i] = value;",
        "}",
    ]


def constant(value: Any, dtype: DType) -> str:
    """A literal of a program."""
    if dtype.kind == "bool":
        return "true" if value else "false"
    return number(TYPES[dtype.name], bits_of(value, dtype))


_BEFORE: dict[str, Callable[..., ElementIndex]] = {
    "reshape": lambda element, shape, _: element.before_reshape(shape),
    "permute": lambda element, shape, order: element.before_permute(shape, order),
    "expand": lambda element, shape, _: element.before_expand(shape),
    "flip": lambda element, _, axes: element.before_flip(axes),
    "crop": lambda element, shape, limits: element.before_crop(shape, limits),
}
"""From the index of a result's element to that in the operand, whose shape is given."""

_INLINE: dict[str, Callable[[Writer, Equation, Sequence[ElementIndex]], list[str]]] = {
    "cast": Writer._cast,
    **dict.fromkeys(_BEFORE, Writer._moved),
    "pad": Writer._pad,
    "gather": Writer._gather,
}
INLINE = frozenset(_INLINE)
MOVES = INLINE - {"cast"}
REDUCTIONS = frozenset({"sum", "max", "scatter_add", "fused_multiply_add"})
"""Ops whose elements combine many elements of the operands."""
