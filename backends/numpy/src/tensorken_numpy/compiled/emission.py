"""Emission: the lines that run each equation of a program, and the memory that they write into."""

from __future__ import annotations

import contextvars
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorken.spec.op import run
from tensorken_numpy import special
from tensorken_numpy.compiled import layouts
from tensorken_numpy.compiled.blocks import write_group
from tensorken_numpy.compiled.contractions import write_contraction
from tensorken_numpy.compiled.lifetimes import Lifetimes, equations_of
from tensorken_numpy.compiled.memory import Place, Planner
from tensorken_numpy.compiled.results import LARGEST, SMALLEST, Results, counts
from tensorken_numpy.compiled.schedule import Group, Unit
from tensorken_numpy.compiled.smallness import is_elementwise, is_literal
from tensorken_numpy.compiled.source import Source
from tensorken_numpy.compiled.templates import safe_in_place, template
from tensorken_numpy.compiled.values import Value, axes_of, in_memory, order_of
from tensorken_numpy.compiled.writing import by_bits, mask_of, write_scalars, write_steps, write_where
from tensorken_numpy.contraction import Array, Sizes
from tensorken_numpy.exponential_sums import in_rows, log_softmax_of_rows, softmax_of_rows

if TYPE_CHECKING:
    from tensorken.programs.program import Equation, Program, Variable

OF: dict[str, np.dtype[Any]] = {
    name: np.dtype(name) for name in ("bool", "int32", "int64", "float16", "float32", "float64")
}


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
        self.step = 0
        self._residents: dict[Variable, list[Place]] = {}
        self._locals: dict[Variable, list[str]] = {}
        self._scalars: dict[Variable, str] = {}
        self._views: dict[Any, Value] = {}
        self._bound: dict[Any, str] = {}
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
        source.line(f"return [{', '.join(results)}]")

    def write_one(self, equation: Equation) -> None:
        """The lines of one equation."""
        if is_elementwise(equation):
            self._elementwise(equation)
        else:
            _WRITERS.get(equation.op.name, Emitter.call)(self, equation)

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
        return self.source.once(("array", dtype, repr(number)), lambda: np.full((), number, dtype))

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
        return self.source.once(("scalar", dtype, repr(number)), lambda: np.full((), number, dtype)[()])

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

    def target(self, v: Variable, shape: Sizes, instead: Sequence[Variable] = ()) -> Value:
        """An array for a result: new if outputs share it, else in a place of the memory.

        Args:
            instead: operands whose place it may take if they die here.
        """
        dtype = OF[v.dtype.name]
        layout = layouts.contiguous(shape, dtype)
        owner = self.lifetimes.owner(v)
        if owner in self.lifetimes.escaping:
            value = self._handed_out(layout)
        else:
            value = self._taken(v, layout, instead) or self.scratch(layout, owner)
        self.values[v] = value
        return value

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
            self._residents.setdefault(owner, []).append(place)
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
                self._residents.setdefault(self.lifetimes.owner(v), []).append(value.place)
                return value
        return None

    def _free(self) -> None:
        for owner in [v for v in self._residents if self.lifetimes.last[v] <= self.step]:
            for place in self._residents.pop(owner):
                self.planner.free(place)
        for owner in [v for v in self._locals if self.lifetimes.last[v] <= self.step]:
            names = self._locals.pop(owner)
            if owner not in self.lifetimes.escaping:
                self.source.line(f"{' = '.join(names)} = None")

    def made(self, v: Variable, name: str, shape: Sizes) -> None:
        """Note what a call has made, laid out in a way of its own."""
        layout = layouts.contiguous(shape, OF[v.dtype.name])
        self.values[v] = Value(name, layout, known=False, owner=v)
        self.drop_later(v, name)

    def drop_later(self, v: Variable, name: str) -> None:
        """Have a local name let go of its array when the value dies."""
        self._locals.setdefault(self.lifetimes.owner(v), []).append(name)

    # ---- ops -----------------------------------------------------------------------------------------------

    def call(self, equation: Equation) -> None:
        """By the backend's own method, which makes the results."""
        source = self.source
        op, params = equation.op, equation.params
        operands = [self.full(v).name for v in equation.operands]
        names = [source.fresh() for _ in equation.results]
        targets = names[0] if op.results == 1 else f"({', '.join(names)},)" if names else source.fresh()
        if outside(equation, self.backend):
            given = [source.bound(x) for x in (run, self.backend, op)]
            source.line(
                f"{targets} = outside({', '.join(given)}, [{', '.join(operands)}], {source.bound(params)})"
            )
        else:
            method = source.bound(getattr(self.backend, op.name))
            source.line(f"{targets} = {method}({', '.join([*operands, *[source.bound(p) for p in params]])})")
        for v, name in zip(equation.results, names, strict=True):
            self.made(v, name, v.shape)

    def _elementwise(self, equation: Equation) -> None:
        (v,) = equation.results
        shape = self.small[v]
        operands = equation.operands
        numbers = [x.value if is_literal(x) else None for x in operands]
        steps = template(equation.op.name, [OF[x.dtype.name] for x in operands], numbers)
        dtype = OF[v.dtype.name]
        if shape == () and steps is not None:
            names = [self.scalar(x) for x in operands]
            name = write_scalars(self, steps, names, OF[operands[-1].dtype.name])
            self.values[v] = Value(name, layouts.contiguous((), dtype))
            self._scalars[v] = name
            return
        if all([n == 1 for n in shape]):
            names = [self.value(x).name for x in operands]
        else:
            names = [self.operand(x) for x in operands]
        if equation.op.name == "cast" and _is_plain(OF[operands[0].dtype.name], dtype):
            target = self.target(v, shape, operands)
            self.source.line(f"{self.source.bound(np.copyto)}({target.name}, {names[0]}, 'unsafe')")
        elif equation.op.name == "where" and by_bits(shape, dtype):
            target = self.target(v, shape)
            mask = self.scratch(layouts.contiguous(self.small[operands[0]], mask_of(dtype)), None)
            write_where(self, operands, names, target.name, mask.name, dtype)
            assert mask.place is not None
            self.planner.free(mask.place)
        elif steps is None:
            params = [self.source.bound(p) for p in equation.params]
            if outside(equation, self.backend):
                given = [self.source.bound(x) for x in (run, self.backend, equation.op)]
                full = [self.full(x).name for x in operands]
                name = self.source.assign(
                    f"outside({', '.join(given)}, [{', '.join(full)}], ({', '.join(params)}))"
                )
                shape = v.shape
            else:
                method = self.source.bound(getattr(self.backend, equation.op.name))
                name = self.source.assign(f"{method}({', '.join([*names, *params])})")
            self.made(v, name, shape)
        else:
            instead = [x for x, letter in zip(operands, "ab", strict=False) if safe_in_place(steps, letter)]
            if len(instead) != len(operands):
                instead = [x for x in instead if operands.count(x) == 1]
            target = self.target(v, shape, instead)
            scratch = None
            if any(["t" in (to, *taken) for _, to, taken in steps]):
                scratch = self.scratch(target.layout, None)
            write_steps(
                self, steps, names, target.name, scratch.name if scratch else "", OF[operands[-1].dtype.name]
            )
            if scratch is not None and scratch.place is not None:
                self.planner.free(scratch.place)

    def _expand(self, equation: Equation) -> None:
        self.values[equation.results[0]] = self.value(equation.operands[0])

    def _permute(self, equation: Equation) -> None:
        (order,) = equation.params
        x = self.value(equation.operands[0])
        self.values[equation.results[0]] = self.view(x, x.layout.transpose(order), f".transpose({order})")

    def _reshape(self, equation: Equation) -> None:
        (v,), (x,) = equation.results, equation.operands
        value = self.value(x)
        shape = self.small[v]
        if math.prod(shape) != value.layout.size:  # repetitions must be made
            value = self.copied(self.full(x), v)
        self.values[v] = self.reshaped(value, shape, v)

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

    def _flip(self, equation: Equation) -> None:
        (axes,) = equation.params
        x = self.value(equation.operands[0])
        key = [slice(None, None, -1) if i in axes and n != 1 else slice(None) for i, n in enumerate(x.shape)]
        self._sliced(equation, x, key)

    def _crop(self, equation: Equation) -> None:
        (limits,) = equation.params
        v, x = equation.operands[0], self.value(equation.operands[0])
        if 0 in equation.results[0].shape:
            x = self.full(v)
        key = [
            slice(None) if n != m or (start, end) == (0, n) else slice(start, end)
            for n, m, (start, end) in zip(x.shape, v.shape, limits, strict=True)
        ]
        self._sliced(equation, x, key)

    def _sliced(self, equation: Equation, x: Value, key: list[slice]) -> None:
        (v,) = equation.results
        if all([one == slice(None) for one in key]):
            self.values[v] = x
            return
        self.values[v] = self.view(x, x.layout[tuple(key)], _key(key))

    def _pad(self, equation: Equation) -> None:
        (v,), (x,), (pads,) = equation.results, equation.operands, equation.params
        target = self.target(v, v.shape)
        self.source.line(f"{target.name}.fill(0)")
        key = [slice(before, before + n) for n, (before, _) in zip(x.shape, pads, strict=True)]
        if key:
            inside = self.view(target, target.layout[tuple(key)], _key(key))
        else:
            inside = target
        self.source.line(f"{self.source.bound(np.copyto)}({inside.name}, {self.value(x).name})")

    def _concatenate(self, equation: Equation) -> None:
        (v,), (axis,) = equation.results, equation.params
        parts = [self.full(x).name for x in equation.operands]
        target = self.target(v, v.shape)
        self.source.line(f"{self.source.bound(np.concatenate)}(({', '.join(parts)},), {axis}, {target.name})")

    def _gather(self, equation: Equation) -> None:
        (v,), (x, indices), (axis,) = equation.results, equation.operands, equation.params
        names = [self.full(x).name, self.full(indices).name]
        if 0 in x.shape or 0 in v.shape:
            self.call(equation)
            return
        target = self.target(v, v.shape)
        self.source.line(  # indices are within range, and with "raise" numpy would go by way of a copy
            f"{self.source.bound(np.take)}({names[0]}, {names[1]}, {axis}, {target.name}, 'clip')"
        )

    def _scatter_add(self, equation: Equation) -> None:
        (v,), (x, indices), (axis, _) = equation.results, equation.operands, equation.params
        names = [self.full(x).name, self.full(indices).name]
        target = self.target(v, v.shape)
        self.source.line(f"{target.name}.fill(0)")
        self.source.line(f"{self.source.bound(special.add_at)}({target.name}, {', '.join(names)}, {axis})")

    def _reduce(self, equation: Equation, reduce: Callable[..., Any]) -> None:
        (v,), (x,), (axes,) = equation.results, equation.operands, equation.params
        if not axes:
            self.values[v] = self.value(x)
            return
        value = self.full(x)
        target = self.target(v, v.shape)
        name = self.source.bound(reduce)
        dtype = self.source.bound(value.dtype)
        self.source.line(f"{name}({value.name}, {axes}, {dtype}, {target.name}, True)")

    def _sum(self, equation: Equation) -> None:
        self._reduce(equation, np.add.reduce)

    def _prod(self, equation: Equation) -> None:
        self._reduce(equation, np.multiply.reduce)

    def _max(self, equation: Equation) -> None:
        self._extreme(equation, np.maximum.reduce)

    def _min(self, equation: Equation) -> None:
        self._extreme(equation, np.minimum.reduce)

    def _extreme(self, equation: Equation, reduce: Callable[..., Any]) -> None:
        (v,), (x,), (axes,) = equation.results, equation.operands, equation.params
        value = self.value(x)
        if 0 in x.shape:
            self.call(equation)
            return
        real = tuple([i for i in axes if value.shape[i] != 1])
        if not axes:
            self.values[v] = value
            return
        target = self.target(v, self.small[v])
        if real:
            self.source.line(f"{self.source.bound(reduce)}({value.name}, {real}, None, {target.name}, True)")
        else:
            self.source.line(f"{self.source.bound(np.copyto)}({target.name}, {value.name})")

    def _softmax(self, equation: Equation) -> None:
        self._rows(equation, softmax_of_rows)

    def _log_softmax(self, equation: Equation) -> None:
        self._rows(equation, log_softmax_of_rows)

    def _rows(self, equation: Equation, function: Callable[..., None]) -> None:
        (v,), (x,), (axes,) = equation.results, equation.operands, equation.params
        value = self.full(x)
        if value.contiguous and value.layout.size and in_rows(value.layout, axes):
            target = self.target(v, v.shape)
            self.source.line(f"{self.source.bound(function)}({value.name}, {axes}, {target.name})")
        else:
            self.call(equation)

    def _cumsum(self, equation: Equation) -> None:
        self._accumulate(equation, np.add.accumulate)

    def _cumprod(self, equation: Equation) -> None:
        self._accumulate(equation, np.multiply.accumulate)

    def _accumulate(self, equation: Equation, accumulate: Callable[..., Any]) -> None:
        (v,), (x,), (axis,) = equation.results, equation.operands, equation.params
        value = self.full(x)
        target = self.target(v, v.shape)
        dtype = self.source.bound(value.dtype)
        self.source.line(f"{self.source.bound(accumulate)}({value.name}, {axis}, {dtype}, {target.name})")

    def _fused_multiply_add(self, equation: Equation) -> None:
        write_contraction(self, equation)


def outside(equation: Equation, backend: Any) -> bool:
    """Whether an op is run from its body: in the caller's context, as it may be anything."""
    return not (equation.op.method and backend.has(equation.op))


def _is_plain(of: np.dtype[Any], to: np.dtype[Any]) -> bool:
    return not (of.kind == "f" and to.kind == "i")


def _key(key: Sequence[slice]) -> str:
    """The text of an index."""
    parts = [
        ":".join(["" if i is None else str(i) for i in (one.start, one.stop)])
        + ("" if one.step is None else f":{one.step}")
        for one in key
    ]
    return f"[{', '.join(parts)}]"


_WRITERS: dict[str, Callable[[Emitter, Equation], None]] = {
    name: getattr(Emitter, f"_{name}")
    for name in (
        "expand", "permute", "reshape", "flip", "crop", "pad", "concatenate", "gather", "sum", "prod", "max", "min",
        "cumsum", "cumprod", "fused_multiply_add", "scatter_add",
        "softmax", "log_softmax",
    )
}  # fmt: skip
