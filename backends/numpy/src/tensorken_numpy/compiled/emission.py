"""Emission: the lines that run each equation of a program, and the memory that they write into."""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tensorken_core.language.dtypes import exact
from tensorken_numpy.compiled import layouts
from tensorken_numpy.compiled.blocks import write_group
from tensorken_numpy.compiled.donations import mine
from tensorken_numpy.compiled.equations import outside, write_equation
from tensorken_numpy.compiled.lifetimes import Lifetimes, equations_of
from tensorken_numpy.compiled.memory import Place, Planner
from tensorken_numpy.compiled.results import LARGEST, SMALLEST, Results, counts
from tensorken_numpy.compiled.schedule import Group, Unit
from tensorken_numpy.compiled.smallness import is_literal
from tensorken_numpy.compiled.source import Source
from tensorken_numpy.compiled.values import OF, Value, axes_of, in_memory, order_of
from tensorken_numpy.contraction import Array, Sizes

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Program, Variable


Facts: TypeAlias = "tuple[Sizes, np.dtype[Any]]"
"""The shape and dtype of an array."""


class Emitter:
    """Writes the function of one program for inputs of given layouts."""

    def __init__(
        self, backend: Any, program: Program, units: Sequence[Unit], small: Mapping[Variable, Sizes]
    ) -> None:
        self.backend = backend
        self.program = program
        self.units = units
        self.small = small
        self.source = Source()
        self.planner = Planner()
        self.lifetimes = Lifetimes(program, units)
        self.values: dict[Variable, Value] = {}
        self.orders = wanted_orders(program)
        self.step = 0
        self._residents: dict[Variable, list[Place]] = {}
        self._locals: dict[Variable, list[str]] = {}
        self._ends: dict[
            int, dict[Variable, None]
        ] = {}  # after which unit the places and names are let go, of whom
        self._scalars: dict[Variable, str] = {}
        self._views: dict[Any, Value] = {}
        self._bound: dict[Any, str] = {}
        self._donors: dict[Variable, str] = {}
        self._donors_of: dict[Variable, list[Variable]] = {}  # by whose memory it is
        self._given_up: dict[Facts, list[Variable]] = {}  # the donors that nothing needs any more
        self._taken_over: list[str] = []
        self._empty = self.source.bound(np.empty)

    # ---- the whole -----------------------------------------------------------------------------------------

    def write(self, inputs: Sequence[Array]) -> None:
        """All lines, for inputs laid out as these."""
        source, program = self.source, self.program
        if any([outside(e, self.backend) for unit in self.units for e in equations_of(unit)]):
            source.line(f"outside = {source.bound(contextvars.copy_context)}().run")
        names = [source.fresh() for _ in program.inputs]
        if names:
            source.line(f"({', '.join(names)},) = inputs")
        for v, name, x in zip(program.inputs, names, inputs, strict=True):
            layout = layouts.strided(x.shape, x.strides, x.dtype)
            self.values[v] = self._as_small(Value(name, layout))
        self._donors = dict(self._donated(names))
        for v in self._donors:
            self._give_up(v, self.lifetimes.last.get(self.lifetimes.owner(v), -1))
        start = len(source.lines)
        for step, unit in enumerate(self.units):
            self.step = step
            if isinstance(unit, Group):
                write_group(self, unit)
            else:
                self.write_one(unit)
            for v in [v for equation in equations_of(unit) for v in equation.results]:
                assert v not in self.values or self.values[v].shape == self.small[v], unit
            self._free()
        results = [self.in_full(v) for v in program.outputs]
        source.lines[start:start] = self._taken_over
        source.line(f"return [{', '.join(results)}]")

    def write_one(self, equation: Equation) -> None:
        """The lines of one equation."""
        write_equation(self, equation)

    # ---- values --------------------------------------------------------------------------------------------

    def value(self, v: Variable) -> Value:
        """What is known of a value of the program."""
        found = self.values.get(v)
        if found is None:
            if is_literal(v):
                array = self.backend.full((1,) * len(v.shape), v.value, v.dtype)
            else:
                x = self.program.constants[v]
                own: Any = x.interpreter
                if own is self.backend:
                    array = np.asarray(x.representation)
                else:
                    array = np.asarray(self.backend.new(v.shape, own.ravel(x.representation), v.dtype))
                array = layouts.small(array)
            name = functools.partial(self.source.bound, array)
            found = self.values[v] = Value(name, array, "constant")
        return found

    def operand(self, v: Variable) -> str:
        """The name of a value among operands that numpy broadcasts: literals without axes, which is quicker."""
        if is_literal(v):
            return self.number(v.value, OF[v.dtype.name])
        return self.single(self.value(v)).name

    def single(self, value: Value) -> Value:
        """One element without axes, which numpy combines with an array more quickly; others as they are."""
        if value.layout.ndim == 0 or value.layout.size != 1 or not value.known:
            return value
        return self.view(value, value.layout.reshape(()), ".reshape(())")

    def number(self, number: Any, dtype: np.dtype[Any]) -> str:
        """The name of an array of one number."""
        return self.source.once(("array", dtype, exact(number)), lambda: np.full((), number, dtype))

    def filled(self, shape: Sizes, number: Any, dtype: np.dtype[Any]) -> str:
        """The name of an array of this shape, all of whose elements are a number."""
        return self.source.once(
            ("filled", shape, dtype, exact(number)), lambda: np.full(shape, number, dtype)
        )

    def scalar(self, v: Variable) -> str:
        """The name of a value without axes, as a scalar of numpy's."""
        if is_literal(v):
            return self.one(v.value, OF[v.dtype.name])
        name = self._scalars.get(v)
        if name is None:
            name = self._scalars[v] = self.source.assign(f"{self.value(v).name}[()]")
        return name

    def one(self, number: Any, dtype: np.dtype[Any]) -> str:
        """The name of a scalar."""
        return self.source.once(("scalar", dtype, exact(number)), lambda: np.full((), number, dtype)[()])

    def view(self, value: Value, layout: Array, expression: str) -> Value:
        """A view of a value: made once if the value's place is known, else in each call, if anything uses it."""
        source = self.source
        if value.kind == "constant":
            return Value(lambda: source.bound(layout), layout, "constant")
        offset = value.offset_of(layout)
        if value.place is not None:
            return self._planned(layout, value.place, offset)
        if not value.known:
            name = source.assign(f"{value.name}{expression}")
            if value.owner is not None:
                self.drop_later(value.owner, name)
            return Value(name, layout, known=False, owner=value.owner)
        key = (id(value.root), offset, axes_of(layout))
        found = self._views.get(key)
        if found is None:
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

            found = self._views[key] = Value(name_of_view, layout, root=root, offset=offset)
        return found

    def _planned(self, layout: Array, place: Place, offset: int) -> Value:
        key = (offset, layout.shape, layout.strides, layout.dtype)

        def name() -> str:
            if key not in self._bound:
                self._bound[key] = self.source.made(lambda memory: in_memory(memory, layout, offset))
            return self._bound[key]

        return Value(name, layout, "planned", place=place, offset=offset)

    def _as_small(self, value: Value) -> Value:
        layout = layouts.small(value.layout)
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
        if value.kind == "local":
            name = self.source.assign(f"{self.source.bound(np.broadcast_to)}({value.name}, {v.shape})")
            return Value(name, layout, known=value.known)
        return self.view(value, layout, "")

    def in_full(self, v: Variable) -> str:
        """The name of the value with its repetitions, to be handed out."""
        if is_literal(v):
            full = self.source.bound(self.backend.full)
            return f"{full}({v.shape}, {self.source.bound(v.value)}, {self.source.bound(v.dtype)})"
        return self.full(v).name

    # ---- memory --------------------------------------------------------------------------------------------

    def _donated(self, names: Sequence[str]) -> Iterator[tuple[Variable, str]]:
        """The inputs whose memory results may take, with their names."""
        for i in sorted(self.program.donated):
            v = self.program.inputs[i]
            layout = self.values[v].layout
            if layout.nbytes >= SMALLEST and layout.flags.c_contiguous and layout.shape == v.shape:
                yield v, names[i]

    def target(self, v: Variable, shape: Sizes, instead: Sequence[Variable] = ()) -> Value:
        """An array for a result: new or a donated one if outputs share it, else in a place of the memory.

        Args:
            v: the result.
            shape: as it is kept.
            instead: operands whose place it may take if they die here.
        """
        dtype = OF[v.dtype.name]
        layout = layouts.contiguous(shape, dtype)
        owner = self.lifetimes.owner(v)
        if owner in self.lifetimes.escaping:
            value = self._taken_from_donor(layout, instead) or self._handed_out(layout)
        else:
            value = self._taken(v, layout, instead) or self.scratch(layout, owner)
        self.values[v] = value
        return value

    def target_in_order(self, v: Variable, order: Sizes) -> Value:
        """The same for a result that is in row-major order once its axes are permuted so."""
        laid = self.target(v, tuple([v.shape[i] for i in order]))
        back = tuple([order.index(i) for i in range(len(order))])
        found = self.values[v] = self.view(laid, laid.layout.transpose(back), f".transpose({back})")
        return found

    def _give_up(self, v: Variable, last: int) -> None:
        """Let results have the memory of a donated input after its last use."""
        owner = self.lifetimes.owner(v)
        if owner in self.lifetimes.escaping:
            return
        if last >= self.step:
            self._ends.setdefault(last, {})[owner] = None
            self._donors_of.setdefault(owner, []).append(v)
        else:
            layout = self.values[v].layout
            self._given_up.setdefault((layout.shape, layout.dtype), []).append(v)

    def dying(self, v: Variable) -> tuple[Sizes, np.dtype[Any], bool] | None:
        """The shape and dtype of the memory that is free once this value is read, and whether it is a donated input's.

        None if other units need it, or it is not laid out in row-major order.
        """
        owner, value = self.lifetimes.owner(v), self.values.get(v)
        if value is None or self.lifetimes.last.get(owner, -1) != self.step:
            return None
        if v in self._donors:
            return (value.shape, value.dtype, True) if owner not in self.lifetimes.escaping else None
        if value.place is None or value.place not in self._residents.get(owner, ()) or not value.contiguous:
            return None
        return value.shape, value.dtype, False

    def _taken_from_donor(self, layout: Array, instead: Sequence[Variable]) -> Value | None:
        """An array that a donated input has, if nothing needs that any more; what is only sure while it runs."""
        facts = (layout.shape, layout.dtype)
        found = next((v for v in instead if self.dying(v) == (*facts, True)), None)
        given_up = self._given_up.get(facts, [])
        while found is None and given_up:
            v = given_up.pop()
            found = v if v in self._donors else None
        if found is None:
            return None
        name = self._donors.pop(found)
        taken = self.source.fresh()
        self._taken_over.append(f"    {taken} = {self.source.bound(mine)}({name})")
        empty = f"{self._empty}({layout.shape}, {self.source.bound(layout.dtype)})"
        return Value(self.source.assign(f"{empty} if {taken} is None else {taken}"), layout)

    def _handed_out(self, layout: Array) -> Value:
        """An array that nobody else has."""
        shape, dtype = layout.shape, layout.dtype
        if SMALLEST <= layout.nbytes <= LARGEST and counts():
            take = self.source.made(lambda memory: Results(shape, dtype).take)
            return Value(self.source.assign(f"{take}()"), layout)
        return Value(self.source.assign(f"{self._empty}({shape}, {self.source.bound(dtype)})"), layout)

    def scratch(self, layout: Array, owner: Variable | None) -> Value:
        """A place of the memory, until its owner dies; without an owner until it is freed."""
        place = self.planner.take(layout.nbytes)
        if owner is not None:
            self._reside(owner, place)
        return self._planned(layout, place, place.offset)

    def _taken(self, v: Variable, layout: Array, instead: Sequence[Variable]) -> Value | None:
        for operand in instead:
            owner = self.lifetimes.owner(operand)
            value = self.values.get(operand)
            if (
                value is not None
                and value.place is not None
                and self.lifetimes.last[owner] == self.step
                and value.place in self._residents.get(owner, ())
                and (value.shape, value.dtype) == (layout.shape, layout.dtype)
                and value.contiguous
                and not any(
                    [other is not operand and self.lifetimes.owner(other) is owner for other in instead]
                )
            ):
                self._residents[owner].remove(value.place)
                self._reside(self.lifetimes.owner(v), value.place)
                return value
        return None

    def _reside(self, owner: Variable, place: Place) -> None:
        """Let a value have a place of the memory until it dies."""
        self._residents.setdefault(owner, []).append(place)
        self._end(owner)

    def _end(self, owner: Variable) -> None:
        """Note that a value has something that is let go after its last use."""
        self._ends.setdefault(max(self.lifetimes.last[owner], self.step), {})[owner] = None

    def _free(self) -> None:
        """Let go of what the values have whose last use this was."""
        for owner in self._ends.pop(self.step, ()):
            for place in self._residents.pop(owner, ()):
                self.planner.free(place)
            for v in self._donors_of.pop(owner, ()):
                self._give_up(v, -1)
            names = self._locals.pop(owner, ())
            if names and owner not in self.lifetimes.escaping:
                self.source.line(f"{' = '.join(names)} = None")

    def made(self, v: Variable, name: str, shape: Sizes) -> None:
        """Note what a call has made, laid out in a way of its own."""
        layout = layouts.contiguous(shape, OF[v.dtype.name])
        self.values[v] = Value(name, layout, known=False, owner=v)
        self.drop_later(v, name)

    def drop_later(self, v: Variable, name: str) -> None:
        """Have a local name let go of its array when the value dies."""
        owner = self.lifetimes.owner(v)
        self._locals.setdefault(owner, []).append(name)
        self._end(owner)

    def reshaped(self, value: Value, shape: Sizes, owner: Variable) -> Value:
        """The value in another shape, copied if it must be."""
        if value.shape == shape:
            return value
        layout = layouts.reshaped(value.layout, shape) if value.known else None
        if layout is None and value.kind != "local":
            value = self.copied(value, owner)
            layout = layouts.reshaped(value.layout, shape)
        if layout is None:
            name = self.source.assign(f"{value.name}.reshape({shape})")
            return Value(name, layouts.contiguous(shape, value.dtype), known=False, owner=value.owner)
        return self.view(value, layout, f".reshape({shape})")

    def copied(self, value: Value, v: Variable) -> Value:
        """The value in row-major order, in memory of its own for v."""
        owner = self.lifetimes.owner(v)
        layout = layouts.contiguous(value.shape, value.dtype)
        if owner in self.lifetimes.escaping:
            copy = self._handed_out(layout)
        else:
            copy = self.scratch(layout, owner)
        self.source.line(f"{self.source.bound(np.copyto)}({copy.name}, {value.name})")
        return copy


def wanted_orders(program: Program) -> dict[Variable, Sizes]:
    """Of the values that are used once, by a permutation, the order that this gives them."""
    uses: dict[Variable, int] = dict.fromkeys(program.outputs, 2)
    orders: dict[Variable, Sizes] = {}
    for equation in program.equations:
        for v in equation.operands:
            uses[v] = uses.get(v, 0) + 1
        if equation.op.name == "permute":
            orders[equation.operands[0]] = equation.params[0]
    return {v: order for v, order in orders.items() if uses[v] == 1}
