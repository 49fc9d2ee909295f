"""Recompiling: a compiled program is used for another function, for other arguments, or for a later call."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tensorken.control_flow.carries import CARRY
from tensorken.control_flow.cond_op import COND
from tensorken.control_flow.scan_op import SCAN
from tensorken_conformance.faults.fault import Arrays, Compile, Run, State, fault, fault_in_calls
from tensorken_conformance.subject import Array
from tensorken_core.program.program import Equation, Literal, Program
from tensorken_core.tensor.tensor import Tensor
from tensorken_numpy.backend import Numpy

LAW = "programs.recompiled"


# ---- caches with too little in their keys ------------------------------------------------------------------


def incomplete_key(program: Program, *without: str) -> tuple[Any, ...]:
    """A cache key of a program that lacks some facts."""
    places: dict[Any, int] = {}

    def kind(v: Any) -> tuple[Any, ...]:
        dtype = None if "dtypes" in without else v.dtype
        return (len(v.shape) if "sizes" in without else v.shape, dtype)

    def value(v: Any) -> tuple[Any, ...]:
        if isinstance(v, Literal):
            if "literals" in without:
                return kind(v)
            return (*kind(v), v.value, "signs" in without or np.signbit(float(v.value)))
        if v in program.constants and "constants" not in without:
            return (*kind(v), np.asarray(program.constants[v].representation).tobytes())
        return kind(v) if "wiring" in without else (*kind(v), places.setdefault(v, len(places)))

    def params(equation: Equation) -> Any:
        if "params" in without:
            return tuple([kind(v) for v in equation.results])
        return tuple(
            [incomplete_key(p, *without) if isinstance(p, Program) else repr(p) for p in equation.params]
        )

    inputs = tuple([value(v) for v in program.inputs])
    steps = tuple(
        [
            (e.op.name, params(e), *[tuple(map(value, vs)) for vs in (e.operands, e.results)])
            for e in program.equations
        ]
    )
    outputs = tuple([kind(v) if "outputs" in without else value(v) for v in program.outputs])
    return inputs, steps, outputs


class _Keyed(Numpy):
    """Keeps the first program of each key, and takes from it the facts that the key lacks."""

    without: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.known: dict[Any, Program] = {}

    def compile(self, program: Program) -> Run | None:
        first = self.known.setdefault(incomplete_key(program, *self.without), program)
        return super().compile(program if first is program else self.mixed(program, first))

    def mixed(self, program: Program, first: Program) -> Program:
        """The program with the facts that its key lacks taken from the first."""
        same = _same(first, program) | dict(zip(first.constants, program.constants, strict=True))
        pairs = zip(first.equations, program.equations, strict=True)
        return program.changed(equations=tuple([self.changed(new, old, same) for old, new in pairs]))

    def changed(self, new: Equation, old: Equation, same: dict[Any, Any]) -> Equation:
        """An equation with the facts that the key lacks."""
        return new


def _same(first: Program, program: Program) -> dict[Any, Any]:
    """For each input and each result of an equation of the first program, the one of the other program."""
    same: dict[Any, Any] = dict(zip(first.inputs, program.inputs, strict=True))
    for old, new in zip(first.equations, program.equations, strict=True):
        same |= dict(zip(old.results, new.results, strict=True))
    return same


@fault(LAW)
class RecompiledWithoutDtypes(_Keyed):
    """A compiled program rounds to the dtypes of the first function with the same equations."""

    without = ("dtypes",)

    def compile(self, program: Program) -> Run | None:
        first = self.known.setdefault(incomplete_key(program, "dtypes"), program)
        run = Numpy.compile(self, program)
        if run is None or first is program:
            return run
        dtypes = [(v.dtype.name, w.dtype.name) for v, w in zip(first.outputs, program.outputs, strict=True)]
        return lambda xs: [
            np.asarray(y.astype(old).astype(new)) for y, (old, new) in zip(run(xs), dtypes, strict=True)
        ]


class _WithoutNumbers(_Keyed):
    """Takes the numbers from the first program."""

    def changed(self, new: Equation, old: Equation, same: dict[Any, Any]) -> Equation:
        operands = [
            Literal(v.shape, v.dtype, w.value) if isinstance(v, Literal) and isinstance(w, Literal) else v
            for v, w in zip(new.operands, old.operands, strict=True)
        ]
        return replace(new, operands=tuple(operands))


@fault(LAW)
class RecompiledWithoutSizes(_WithoutNumbers):
    """A compiled program has the numbers, such as the divisor of a mean, of the first of other sizes."""

    without = ("sizes", "literals", "params")


@fault(LAW)
class RecompiledWithoutStatics(_WithoutNumbers):
    """A compiled program has the numbers of the first that differs in nothing else, as with another static argument."""

    without = ("literals",)


@fault(LAW)
class RecompiledByEqualNumbers(_WithoutNumbers):
    """A compiled program has the zeros of the first whose numbers are equal, of either sign."""

    without = ("signs",)


@fault(LAW)
class RecompiledWithoutConstants(_Keyed):
    """A compiled program has the captured tensors of the first with the same equations."""

    without = ("constants",)

    def mixed(self, program: Program, first: Program) -> Program:
        state: dict[Any, Tensor] = dict(zip(program.constants, first.constants.values(), strict=True))
        return program.changed(constants=state)


@fault(LAW)
class RecompiledWithoutParams(_Keyed):
    """A compiled program has the axes and other params of the first whose values have the same shapes."""

    without = ("params",)

    def changed(self, new: Equation, old: Equation, same: dict[Any, Any]) -> Equation:
        return new if any(isinstance(p, Program) for p in new.params) else replace(new, params=old.params)


@fault(LAW)
class RecompiledWithoutWiring(_Keyed):
    """A compiled program has its operands in the order of the first with the same ops, shapes and dtypes."""

    without = ("wiring", "constants")

    def changed(self, new: Equation, old: Equation, same: dict[Any, Any]) -> Equation:
        operands = [
            v if isinstance(v, Literal) or w not in same else same[w]
            for v, w in zip(new.operands, old.operands, strict=True)
        ]
        return replace(new, operands=tuple(operands))


@fault(LAW)
class RecompiledWithoutOutputs(_Keyed):
    """A compiled program returns the values that the first with the same equations returns, in its order."""

    without = ("outputs",)

    def mixed(self, program: Program, first: Program) -> Program:
        same, pairs = _same(first, program), zip(first.outputs, program.outputs, strict=True)
        return program.changed(outputs=tuple([same.get(v, w) for v, w in pairs]))


@fault(LAW, method="compile")
def fifth_program_in_place_of_first(original: Compile, state: State, program: Program) -> Run | None:
    """Of programs with the same inputs and outputs four are cached, and the fifth runs where the first is called."""
    run = original(program)
    if run is None:
        return None
    values = (program.inputs, program.outputs)
    key = tuple([tuple([(v.shape, v.dtype) for v in some]) for some in values])
    slots = state.setdefault(key, [])
    slots.append(run)
    place = (len(slots) - 1) % 4
    slots[place] = run
    return lambda xs: slots[place](xs)


@fault_in_calls(LAW)
def compiled_for_first_layout(run: Run, state: State, program: Program, xs: Arrays) -> Arrays:
    """A compiled program reads permuted operands in the order of memory, if those of the first call are plain."""
    plain = state.setdefault("plain", [x.flags.c_contiguous for x in xs])
    return run([x.ravel("K").reshape(x.shape) if p else x for x, p in zip(xs, plain, strict=True)])


@fault_in_calls(LAW)
def packed_by_address(run: Run, state: State, program: Program, xs: Arrays) -> Arrays:
    """A compiled program caches a copy of its second operand until the operand has another address."""
    if len(xs) < 2:
        return run(xs)
    key = (xs[1].ctypes.data, xs[1].shape, xs[1].strides)
    if key not in state:
        state.clear()
        state[key] = np.array(xs[1])
    return run([xs[0], state[key], *xs[2:]])


# ---- memory ------------------------------------------------------------------------------------------------


@fault_in_calls(LAW)
def two_buffers_in_turn(run: Run, state: State, program: Program, xs: Arrays) -> Arrays:
    """A compiled program returns its results in two buffers in turn, so that the third call overwrites the first."""
    turns: list[list[Array]] = state.setdefault("turns", [])
    turns.append([np.array(y) for y in run(xs)])
    if len(turns) > 2:
        for old, y in zip(turns[-3], turns[-1], strict=True):
            old[...] = y
        turns[-1] = turns.pop(0)
    return turns[-1]


@fault_in_calls(LAW)
def second_of_two_the_same_is_written(run: Run, state: State, program: Program, xs: Arrays) -> Arrays:
    """A compiled program that is called with one array twice writes its first result into it."""
    ys = run(xs)
    twice = len(xs) == 2 and xs[0] is xs[1] and xs[0].flags.writeable
    if twice and ys[0].shape == xs[0].shape and ys[0].dtype == xs[0].dtype:
        xs[0][...] = ys[0]
    return ys


@fault_in_calls(LAW)
def large_input_is_written(run: Run, state: State, program: Program, xs: Arrays) -> Arrays:
    """A compiled program returns a result of 1024 elements or more in the memory of an operand of that shape."""
    if program.donated:
        return run(xs)
    ys = [np.array(y) for y in run(xs)]
    for x in xs:
        if x.size >= 1024 and x.flags.writeable and (x.shape, x.dtype) == (ys[0].shape, ys[0].dtype):
            x[...] = ys[0]
            ys[0] = x
            break
    return ys


@fault_in_calls(LAW)
def passed_on_in_one_buffer(run: Run, state: State, program: Program, xs: Arrays) -> Arrays:
    """A compiled program returns an operand as a copy in memory that the next call overwrites."""
    ys = list(run(xs))
    for i in [i for i, v in enumerate(program.outputs) if v in program.inputs]:
        buffer = state.setdefault(i, np.empty_like(ys[i]))
        buffer[...] = ys[i]
        ys[i] = buffer
    return ys


# ---- loops and branches ------------------------------------------------------------------------------------


@fault(LAW, method="compile")
def carries_one_after_the_other(original: Compile, program: Program) -> Run | None:
    """A compiled scan writes its first carry before it computes the second from it."""
    equations = [_one_after_the_other(e) if e.op is SCAN else e for e in program.equations]
    return original(program.changed(equations=tuple(equations)))


def _one_after_the_other(equation: Equation) -> Equation:
    body, going_in, coming_out, *rest = equation.params
    before = next((v for v, role in zip(body.inputs, going_in, strict=True) if role == CARRY), None)
    after = next((v for v, role in zip(body.outputs, coming_out, strict=True) if role == CARRY), None)
    done = after in body.inputs
    steps = []
    for step in body.equations:
        operands = [after if done and v is before else v for v in step.operands]
        steps.append(replace(step, operands=tuple(operands)))
        done = done or after in step.results
    outputs = [after if v is before else v for v in body.outputs]
    changed = body.changed(equations=tuple(steps), outputs=tuple(outputs))
    return replace(equation, params=(changed, going_in, coming_out, *rest))


@fault_in_calls(LAW)
def branch_of_the_first_call(run: Run, state: State, program: Program, xs: Arrays) -> Arrays:
    """A compiled program that chooses a branch by an operand takes the one that it took at first."""
    chosen = {e.operands[0] for e in program.equations if e.op is COND}
    return run(
        [state.setdefault(v, x) if v in chosen else x for v, x in zip(program.inputs, xs, strict=True)]
    )
