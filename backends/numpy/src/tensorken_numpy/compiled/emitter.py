"""The emitter: the array, the name and the memory of each value while a function is written."""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tensorken_core.language.dtypes import exact
from tensorken_numpy.arrays import Array, Sizes
from tensorken_numpy.compiled import layouts
from tensorken_numpy.compiled.donations import if_unshared
from tensorken_numpy.compiled.lifetimes import Lifetimes, equations_of
from tensorken_numpy.compiled.memory import Planner, Region
from tensorken_numpy.compiled.predicates import is_literal, runs_body
from tensorken_numpy.compiled.results import LARGEST, SMALLEST, ResultPool, has_reference_counts
from tensorken_numpy.compiled.schedule import Unit
from tensorken_numpy.compiled.source import Source
from tensorken_numpy.compiled.values import NUMPY_DTYPES, Value, axes_of, in_memory, order_of

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Program, Variable


ArrayType: TypeAlias = "tuple[Sizes, np.dtype[Any]]"
"""The shape and dtype of an array."""


class Emitter:
    """The state of writing one function: its source, the values, and the plan of its memory.

    Args:
        backend: runs the ops.
        program: to write.
        units: its schedule.
        compact: the compact shape of each value.

    Attributes:
        step: index of the unit that is being written.
    """

    def __init__(
        self, backend: Any, program: Program, units: Sequence[Unit], compact: Mapping[Variable, Sizes]
    ) -> None:
        self.backend = backend
        self.program = program
        self.units = units
        self.compact = compact
        self.source = Source()
        self.planner = Planner()
        self.lifetimes = Lifetimes(program, units)
        self.values: dict[Variable, Value] = {}
        self.orders = preferred_orders(program)
        self.step = 0
        self._regions: dict[Variable, list[Region]] = {}
        self._locals: dict[Variable, list[str]] = {}
        self._releases: dict[int, dict[Variable, None]] = {}  # unit -> owners whose last use it is
        self.scalars: dict[Variable, str] = {}
        self._views: dict[Any, Value] = {}
        self._bound: dict[Any, str] = {}
        self._donors: dict[Variable, str] = {}
        self._donors_of: dict[Variable, list[Variable]] = {}  # owner of memory -> donated inputs
        self._released_donors: dict[ArrayType, list[Variable]] = {}  # donated inputs that no later unit needs
        self._donation_lines: list[str] = []
        self._empty = self.source.bound(np.empty)

    # ---- the function --------------------------------------------------------------------------------------

    def begin(self, inputs: Sequence[Array]) -> None:
        """Write the head of the function, for inputs with these layouts."""
        source, program = self.source, self.program
        if any([runs_body(e, self.backend) for unit in self.units for e in equations_of(unit)]):
            source.line(f"in_context = {source.bound(contextvars.copy_context)}().run")
        names = [source.new_name() for _ in program.inputs]
        if names:
            source.line(f"({', '.join(names)},) = inputs")
        for v, name, x in zip(program.inputs, names, inputs, strict=True):
            layout = layouts.strided(x.shape, x.strides, x.dtype)
            self.values[v] = self._compacted(Value(name, layout))
        self._donors = dict(self._donated(names))
        for v in self._donors:
            self._release_donor(v, self.lifetimes.last.get(self.lifetimes.owner(v), -1))
        self._start = len(source.lines)

    def end_step(self) -> None:
        """Release the memory of values that die with this unit."""
        unit = self.units[self.step]
        for v in [v for equation in equations_of(unit) for v in equation.results]:
            assert v not in self.values or self.values[v].shape == self.compact[v], unit
        self._release()

    def finish(self) -> None:
        """Write the end of the function, which returns the outputs."""
        results = [self.output_name(v) for v in self.program.outputs]
        self.source.lines[self._start : self._start] = self._donation_lines
        self.source.line(f"return [{', '.join(results)}]")

    # ---- values --------------------------------------------------------------------------------------------

    def value(self, v: Variable) -> Value:
        """The array of a variable."""
        value = self.values.get(v)
        if value is None:
            if is_literal(v):
                array = self.backend.full((1,) * len(v.shape), v.value, v.dtype)
            else:
                array = layouts.compact(np.asarray(self.program.constants[v].representation))
            name = functools.partial(self.source.bound, array)
            value = self.values[v] = Value(name, array, "constant")
        return value

    def operand(self, v: Variable) -> str:
        """The name of a value among operands that numpy broadcasts; literals have no axes, which is faster."""
        if is_literal(v):
            return self.number(v.value, NUMPY_DTYPES[v.dtype.name])
        return self.single(self.value(v)).name

    def single(self, value: Value) -> Value:
        """A view without axes of a single element, which numpy combines with arrays faster; other values unchanged."""
        if value.layout.ndim == 0 or value.layout.size != 1 or not value.known:
            return value
        return self.view(value, value.layout.reshape(()), ".reshape(())")

    def number(self, number: Any, dtype: np.dtype[Any]) -> str:
        """The name of an array of one number without axes."""
        return self.source.cached(("array", dtype, exact(number)), lambda: np.full((), number, dtype))

    def filled(self, shape: Sizes, number: Any, dtype: np.dtype[Any]) -> str:
        """The name of an array of this shape filled with a number."""
        return self.source.cached(
            ("filled", shape, dtype, exact(number)), lambda: np.full(shape, number, dtype)
        )

    def scalar(self, v: Variable) -> str:
        """The name of a value without axes as a numpy scalar."""
        if is_literal(v):
            return self.scalar_number(v.value, NUMPY_DTYPES[v.dtype.name])
        name = self.scalars.get(v)
        if name is None:
            name = self.scalars[v] = self.source.assign(f"{self.value(v).name}[()]")
        return name

    def scalar_number(self, number: Any, dtype: np.dtype[Any]) -> str:
        """The name of a numpy scalar."""
        return self.source.cached(("scalar", dtype, exact(number)), lambda: np.full((), number, dtype)[()])

    def view(self, value: Value, layout: Array, expression: str) -> Value:
        """A view of a value: bound once if the value is planned, else created in each call that uses its name."""
        source = self.source
        if value.storage == "constant":
            return Value(lambda: source.bound(layout), layout, "constant")
        offset = value.offset_of(layout)
        if value.region is not None:
            return self._planned(layout, value.region, offset)
        if not value.known:
            name = source.assign(f"{value.name}{expression}")
            if value.owner is not None:
                self.drop_later(value.owner, name)
            return Value(name, layout, known=False, owner=value.owner)
        key = (id(value.root), offset, axes_of(layout))
        view = self._views.get(key)
        if view is None:
            root = value.root
            if offset == 0 and axes_of(layout) == axes_of(root.layout):
                return root
            order = order_of(layout, root.layout) if offset == 0 else None

            def name_of_view() -> str:
                if order is not None:
                    return source.assign(f"{root.name}.transpose({order})")
                if (
                    offset == 0
                    and layout.size == root.layout.size
                    and layout.flags.c_contiguous
                    and root.contiguous
                ):
                    return source.assign(f"{root.name}.reshape({layout.shape})")
                return source.assign(f"{value.name}{expression}")

            view = self._views[key] = Value(name_of_view, layout, root=root, offset=offset)
        return view

    def _planned(self, layout: Array, region: Region, offset: int) -> Value:
        key = (offset, layout.shape, layout.strides, layout.dtype)

        def name() -> str:
            if key not in self._bound:
                self._bound[key] = self.source.bound_per_instance(
                    lambda memory: in_memory(memory, layout, offset)
                )
            return self._bound[key]

        return Value(name, layout, "planned", region=region, offset=offset)

    def _compacted(self, value: Value) -> Value:
        layout = layouts.compact(value.layout)
        if layout.shape == value.layout.shape:
            return value
        key = ", ".join(
            [":1" if n != m else ":" for n, m in zip(layout.shape, value.layout.shape, strict=True)]
        )
        return self.view(value, layout, f"[{key}]")

    def full(self, v: Variable) -> Value:
        """The value with its repetitions, as a view."""
        value = self.value(v)
        if value.shape == v.shape:
            return value
        layout = np.broadcast_to(value.layout, v.shape)
        if value.storage == "local":
            name = self.source.assign(f"{self.source.bound(np.broadcast_to)}({value.name}, {v.shape})")
            return Value(name, layout, known=value.known)
        return self.view(value, layout, "")

    def output_name(self, v: Variable) -> str:
        """The name of the value with its repetitions, as an output."""
        if is_literal(v):
            full = self.source.bound(self.backend.full)
            return f"{full}({v.shape}, {self.source.bound(v.value)}, {self.source.bound(v.dtype)})"
        return self.full(v).name

    # ---- memory --------------------------------------------------------------------------------------------

    def _donated(self, names: Sequence[str]) -> Iterator[tuple[Variable, str]]:
        """The donated inputs whose memory results may reuse, with their names."""
        for i in sorted(self.program.donated):
            v = self.program.inputs[i]
            layout = self.values[v].layout
            if layout.nbytes >= SMALLEST and layout.flags.c_contiguous and layout.shape == v.shape:
                yield v, names[i]

    def target(self, v: Variable, shape: Sizes, reusable: Sequence[Variable] = ()) -> Value:
        """The array for a result: a new or a donated one if outputs share it, else a region of the memory.

        Args:
            v: the result.
            shape: its compact shape.
            reusable: operands whose memory it may reuse if this is their last use.
        """
        dtype = NUMPY_DTYPES[v.dtype.name]
        layout = layouts.contiguous(shape, dtype)
        owner = self.lifetimes.owner(v)
        if owner in self.lifetimes.escaping:
            value = self._donated_array(layout, reusable) or self._new_output(layout)
        else:
            value = self._reused_region(v, layout, reusable) or self.scratch(layout, owner)
        self.values[v] = value
        return value

    def updates_in_place(self, equation: Equation) -> bool:
        """Whether an update may overwrite its operand: no other value needs its memory, and no element repeats."""
        y = equation.operands[0]
        value = self.values.get(y)
        if value is None or value.storage == "constant" or equation not in self.lifetimes.updates:
            return False
        return value.contiguous and value.shape == y.shape and value.layout.size > 1

    def target_in_order(self, v: Variable, order: Sizes) -> Value:
        """The array for a result that is row-major after this permutation of its axes."""
        permuted = self.target(v, tuple([v.shape[i] for i in order]))
        inverse = tuple([order.index(i) for i in range(len(order))])
        target = self.values[v] = self.view(
            permuted, permuted.layout.transpose(inverse), f".transpose({inverse})"
        )
        return target

    def _release_donor(self, v: Variable, last: int) -> None:
        """Let results reuse the memory of a donated input after its last use."""
        owner = self.lifetimes.owner(v)
        if owner in self.lifetimes.escaping:
            return
        if last >= self.step:
            self._releases.setdefault(last, {})[owner] = None
            self._donors_of.setdefault(owner, []).append(v)
        else:
            layout = self.values[v].layout
            self._released_donors.setdefault((layout.shape, layout.dtype), []).append(v)

    def dying_memory(self, v: Variable) -> tuple[Sizes, np.dtype[Any], bool] | None:
        """Shape and dtype of the memory that is free once this value is read, and whether a donated input owns it.

        None if later units need the memory, or the value is not row-major.
        """
        owner, value = self.lifetimes.owner(v), self.values.get(v)
        if value is None or self.lifetimes.last.get(owner, -1) != self.step:
            return None
        if v in self._donors:
            return (value.shape, value.dtype, True) if owner not in self.lifetimes.escaping else None
        if value.region is None or value.region not in self._regions.get(owner, ()) or not value.contiguous:
            return None
        return value.shape, value.dtype, False

    def _donated_array(self, layout: Array, reusable: Sequence[Variable]) -> Value | None:
        """The array of a donated input after its last use, if only the call refers to the array at run time."""
        key = (layout.shape, layout.dtype)
        donor = next((v for v in reusable if self.dying_memory(v) == (*key, True)), None)
        released = self._released_donors.get(key, [])
        while donor is None and released:
            v = released.pop()
            donor = v if v in self._donors else None
        if donor is None:
            return None
        name = self._donors.pop(donor)
        donated = self.source.new_name()
        self._donation_lines.append(f"    {donated} = {self.source.bound(if_unshared)}({name})")
        empty = f"{self._empty}({layout.shape}, {self.source.bound(layout.dtype)})"
        return Value(self.source.assign(f"{empty} if {donated} is None else {donated}"), layout)

    def _new_output(self, layout: Array) -> Value:
        """A new array for an output."""
        shape, dtype = layout.shape, layout.dtype
        if SMALLEST <= layout.nbytes <= LARGEST and has_reference_counts():
            take = self.source.bound_per_instance(lambda memory: ResultPool(shape, dtype).take)
            return Value(self.source.assign(f"{take}()"), layout)
        return Value(self.source.assign(f"{self._empty}({shape}, {self.source.bound(dtype)})"), layout)

    def scratch(self, layout: Array, owner: Variable | None) -> Value:
        """A region of the memory until its owner dies; without an owner until it is freed."""
        region = self.planner.take(layout.nbytes)
        if owner is not None:
            self._assign_region(owner, region)
        return self._planned(layout, region, region.offset)

    def _reused_region(self, v: Variable, layout: Array, reusable: Sequence[Variable]) -> Value | None:
        for operand in reusable:
            owner = self.lifetimes.owner(operand)
            value = self.values.get(operand)
            if (
                value is not None
                and value.region is not None
                and self.lifetimes.last[owner] == self.step
                and value.region in self._regions.get(owner, ())
                and (value.shape, value.dtype) == (layout.shape, layout.dtype)
                and value.contiguous
                and not any(
                    [other is not operand and self.lifetimes.owner(other) is owner for other in reusable]
                )
            ):
                self._regions[owner].remove(value.region)
                self._assign_region(self.lifetimes.owner(v), value.region)
                return value
        return None

    def _assign_region(self, owner: Variable, region: Region) -> None:
        """Give a value a region of the memory until it dies."""
        self._regions.setdefault(owner, []).append(region)
        self._release_at_death(owner)

    def _release_at_death(self, owner: Variable) -> None:
        """Register that a value's regions, donated inputs and names are released after its last use."""
        self._releases.setdefault(max(self.lifetimes.last[owner], self.step), {})[owner] = None

    def _release(self) -> None:
        """Release the regions, donated inputs and names of values whose last use was this step."""
        for owner in self._releases.pop(self.step, ()):
            for region in self._regions.pop(owner, ()):
                self.planner.free(region)
            for v in self._donors_of.pop(owner, ()):
                self._release_donor(v, -1)
            names = self._locals.pop(owner, ())
            if names and owner not in self.lifetimes.escaping:
                self.source.line(f"{' = '.join(names)} = None")

    def add_local(self, v: Variable, name: str, shape: Sizes) -> None:
        """Register an array that a call returned, with unknown strides."""
        layout = layouts.contiguous(shape, NUMPY_DTYPES[v.dtype.name])
        self.values[v] = Value(name, layout, known=False, owner=v)
        self.drop_later(v, name)

    def drop_later(self, v: Variable, name: str) -> None:
        """Drop the reference of a local name when the value dies."""
        owner = self.lifetimes.owner(v)
        self._locals.setdefault(owner, []).append(name)
        self._release_at_death(owner)

    def reshaped(self, value: Value, shape: Sizes, owner: Variable) -> Value:
        """The value in another shape, copied if necessary."""
        if value.shape == shape:
            return value
        layout = layouts.reshaped(value.layout, shape) if value.known else None
        if layout is None and value.storage != "local":
            value = self.copied(value, owner)
            layout = layouts.reshaped(value.layout, shape)
        if layout is None:
            name = self.source.assign(f"{value.name}.reshape({shape})")
            return Value(name, layouts.contiguous(shape, value.dtype), known=False, owner=value.owner)
        return self.view(value, layout, f".reshape({shape})")

    def copied(self, value: Value, v: Variable) -> Value:
        """The value copied to row-major order, in memory of v."""
        owner = self.lifetimes.owner(v)
        layout = layouts.contiguous(value.shape, value.dtype)
        if owner in self.lifetimes.escaping:
            copy = self._new_output(layout)
        else:
            copy = self.scratch(layout, owner)
        self.source.line(f"{self.source.bound(np.copyto)}({copy.name}, {value.name})")
        return copy


def preferred_orders(program: Program) -> dict[Variable, Sizes]:
    """The permuted order of the axes of each value whose only use is one `permute`."""
    uses: dict[Variable, int] = dict.fromkeys(program.outputs, 2)
    orders: dict[Variable, Sizes] = {}
    for equation in program.equations:
        for v in equation.operands:
            uses[v] = uses.get(v, 0) + 1
        if equation.op.name == "permute":
            orders[equation.operands[0]] = equation.params[0]
    return {v: order for v, order in orders.items() if uses[v] == 1}
