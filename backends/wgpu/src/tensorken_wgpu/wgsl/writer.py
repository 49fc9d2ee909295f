"""Writer: writes elements of values as WGSL, together with the elements that they are computed from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, Any

from tensorken.kernels.element_indices import STEP, Bound
from tensorken.kernels.elements import ElementWalk
from tensorken.kernels.index_expressions import IndexExpression, variable, written_variable
from tensorken.programs.ops import STEP_STACK
from tensorken_wgpu.wgsl.dtypes import SIZES, size_of
from tensorken_wgpu.wgsl.ops import CASTS, STORED, TYPES, as_index, bits_of, expressions, loaded, stored
from tensorken_wgpu.wgsl.templates import index_text, integer, number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorken_core.language.dtypes import DType
    from tensorken_core.language.op import Op
    from tensorken_core.program.program import Equation, Variable
    from tensorken_wgpu.wgsl.target import Target
    from tensorken_wgpu.wgsl.vectors import Vector


class Writer(ElementWalk[str]):
    """Writes one kernel.  An element is a name, a literal, or an expression that gets a name next.

    Args:
        producers: for each computed value its equation.
        kept: the values in memory, before or after this kernel.
        computed: the kept values that this kernel computes.
        vectors: the vectors in which values are read and written, for values that have vectors.
        target: the device; None if all values are small.

    Attributes:
        lines: the text so far.
        reads: the values read from memory, and their names in the text.
        writes: the values written to memory, and their names.
        unaligned: values that cannot be read or written in their vectors, as accesses are not aligned.
        vectors: as in the arguments.
        reads_single: whether elements at any index are read now, of vectors of four.
        is_proved: whether each index of an array that is written is known to be in range, see `modules`.
    """

    def __init__(
        self,
        producers: Mapping[Variable, Equation],
        kept: Collection[Variable],
        computed: frozenset[Variable],
        vectors: Mapping[Variable, Vector] | None = None,
        target: Target | None = None,
    ) -> None:
        super().__init__(producers, kept, computed)
        self.lines: list[str] = []
        self.reads: dict[Variable, str] = {}
        self.writes: dict[Variable, str] = {}
        self.unaligned: set[Variable] = set()
        self.is_proved = True
        self.reads_single = False
        self.vectors = vectors or {}
        self._target = target
        self._indent = "  "
        self._count = 0
        self._unproved: set[str] = set()  # names of indices that may be larger than their numbers of values

    # ---- lines ---------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append(self._indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Put the lines written in the context in braces after the head; their names are out of scope afterwards."""
        indent = self._indent
        self.line(head + " {")
        self._indent += "  "
        with self.scope():
            yield
        self._indent = indent
        self.line("}")

    def new_name(self) -> str:
        """An unused name."""
        self._count += 1
        return f"v{self._count}"

    def named(self, key: object, text: str) -> str:
        """The name of an expression, which is written once per scope."""
        name: str | None = self.known.get(key)
        if name is None:
            name = self.known[key] = self.new_name()
            self.line(f"let {name} = {text};")
        return name

    def index(self, text: str, size: int) -> IndexExpression:
        """A named index expression with this many values."""
        return variable(self.named(text, text), size)

    # ---- elements ------------------------------------------------------------------------------------------

    def bind(self, element: str, dtype: DType) -> str:
        """The name of an element, assigned on a line of its own unless it is a name."""
        if element.isidentifier():
            return element
        name = self.new_name()
        self.lines.append(f"{self._indent}let {name}: {TYPES[dtype.name]} = {element};")
        return name

    def constant(self, value: Any, dtype: DType) -> str:
        return constant(value, dtype)

    def op(self, op: Op, operands: Sequence[str], dtype: DType) -> str:
        return expressions(dtype.name)[op.name](*operands)

    def cast(self, x: str, source: DType, dtype: DType) -> str:
        return CASTS[source.name, dtype.name](x)

    def product(self, a: str, b: str, dtype: DType) -> str:
        return f"{a} * {b}"

    def guarded(
        self, values: Callable[[], Sequence[str]], bounds: Sequence[Sequence[Bound]], dtype: DType
    ) -> list[str]:
        zero = constant(0, dtype)
        return [
            f"select({zero}, {value}, {' && '.join(map(_condition, conditions))})" if conditions else value
            for value, conditions in zip(values(), bounds, strict=True)
        ]

    def as_index(self, element: str, dtype: DType, size: int) -> IndexExpression:
        text = as_index(dtype.name, element)
        name = self.named(text, text)
        self._unproved.add(name)
        return written_variable(name, size)

    def index_element(self, index: IndexExpression, dtype: DType) -> str:
        return f"{TYPES[dtype.name]}({index_text(index)})"

    def new_quotient(
        self, dividend: IndexExpression, operator: str, divisor: int, size: int
    ) -> IndexExpression:
        index = self.index(f"({index_text(dividend)}) {operator} {integer(divisor)}", size)
        if not self._unproved.isdisjoint(dividend.terms):
            self._unproved.update(index.terms)
        return index

    def new_index(self, index: IndexExpression, size: int) -> IndexExpression:
        bounded = self.index(index_text(index), size)
        self._unproved.update(bounded.terms)
        return bounded

    # ---- memory --------------------------------------------------------------------------------------------

    def load(self, v: Variable, index: IndexExpression) -> str:
        name = self.reads.setdefault(v, f"x{len(self.reads)}")
        dtype = v.dtype.name
        vector = self.vectors.get(v)
        if vector is None:
            return loaded(dtype, self._access(v, name, self._clamped(index, prod(v.shape))))
        if self.reads_single:
            position = self._clamped(index, prod(v.shape))
            loaded_vector = self._access(v, name, f"({position}) / {vector.size}u")
            return loaded(dtype, f"{loaded_vector}[({position}) % {vector.size}u]")
        start, i = self._aligned(v, vector, index)
        position = self._clamped(start, prod(v.shape) // vector.size)
        loaded_vector = self.named((name, start.key), self._access(v, name, position))
        return loaded(dtype, vector.element(loaded_vector, i))

    def _is_below(self, index: IndexExpression, size: int) -> bool:
        """Whether an index is known to be below a size."""
        return index.end is not None and index.end <= size and self._unproved.isdisjoint(index.terms)

    def _clamped(self, index: IndexExpression, size: int) -> str:
        """An index that is below a size: where the index is out of range, the element is not used."""
        text = index_text(index)
        return text if self._is_below(index, size) else f"min({text}, {integer(size - 1)})"

    def _aligned(self, v: Variable, vector: Vector, index: IndexExpression) -> tuple[IndexExpression, int]:
        """The index of an element's vector, and its index within; unaligned accesses are recorded in `unaligned`."""
        if any([f % vector.size for f in index.terms.values()]):
            self.unaligned.add(v)
            return index, 0
        return index.over(vector.size), index.constant % vector.size

    def store(self, v: Variable, elements: Sequence[tuple[IndexExpression, str]]) -> None:
        """Write one element or neighbouring elements to memory; those of a stack to the place of the step."""
        name = self.writes.setdefault(v, f"y{len(self.writes)}")
        count, length = prod(v.shape), self._stack_length(v)
        if length > 1:
            start = variable(STEP, length).times(count)
            elements = [(index + start, value) for index, value in elements]
            count *= length
        dtype = v.dtype.name
        vector = self.vectors.get(v)
        size = vector.size if vector else 1
        for i in range(0, len(elements), size):
            indices = [index for index, _ in elements[i : i + size]]
            values = [stored(dtype, value) for _, value in elements[i : i + size]]
            if vector is None:
                self._put(v, name, indices[0], values[0], count)
                continue
            start, first = self._aligned(v, vector, indices[0])
            if first or [index.key for index in indices] != [indices[0].plus(j).key for j in range(size)]:
                self.unaligned.add(v)
            else:
                self._put(v, name, start, vector.joined(values), count // size)

    def _stack_length(self, v: Variable) -> int:
        """How many values the memory of a written value has: those of all steps of a loop for a stack, else one."""
        equation = self.producers.get(v)
        return equation.params[0] if equation is not None and equation.op is STEP_STACK else 1

    def _put(self, v: Variable, name: str, index: IndexExpression, value: str, size: int) -> None:
        self.is_proved &= self._is_below(index, size)
        is_single = len(self.windows(v)) == 1
        self.line(
            f"{name}[{index_text(index)}] = {value};"
            if is_single
            else f"{name}({index_text(index)}, {value});"
        )

    def _access(self, v: Variable, name: str, index: str) -> str:
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


def _condition(bound: Bound) -> str:
    """Whether an index is in bounds: below 0 it wraps, and is larger than any size."""
    index, size = bound
    return f"({index_text(index)}) < {integer(size)}" if index.terms else "false"


def _reading(name: str, type_name: str, parts: list[str], starts: list[int]) -> list[str]:
    """The function that reads an element of a value bound in several windows."""
    cases = [
        f"  if (i >= {start}u) {{ return {part}[i - {start}u]; }}"
        for part, start in zip(parts, starts, strict=True)
    ]
    return [f"fn {name}(i: u32) -> {type_name} {{", *reversed(cases[1:]), f"  return {parts[0]}[i];", "}"]


def _writing(name: str, type_name: str, parts: list[str], starts: list[int]) -> list[str]:
    """The function that writes an element of a value bound in several windows."""
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
