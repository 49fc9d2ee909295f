"""Closures: a tensor that a function closes over is dropped, is mistaken for another, or keeps its first value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tensorken
from tensorken_conformance.faults.fault import (
    Arrays,
    Compile,
    Run,
    State,
    fault,
    fault_by,
    fault_in_calls,
    fault_in_function,
)
from tensorken_conformance.subject import Array
from tensorken_core.program.program import Program
from tensorken_core.tensor.tensor import Tensor
from tensorken_core.transforms import checkpoint, closures

LAW = "programs.closures"


Constants = Callable[[dict[Any, Array], Program, Array], Array]


def _with_constants(wrong: Constants, original: Compile, state: State, program: Program) -> Run | None:
    constants = {
        v: Tensor(x.interpreter, wrong(state, program, x.representation), v.shape, v.dtype)
        for v, x in program.constants.items()
    }
    return original(program.changed(constants=constants))


_fault_in_constants = fault_by(_with_constants, LAW, method="compile")
"""Declares a fault in the constants of a compiled program: the tensors that the function closes over.

The function receives a dict of the backend, the program, and the value of a constant, and returns another value.
"""


@fault(LAW, method="compile")
def programs_by_text(original: Compile, state: dict[Any, Run | None], program: Program) -> Run | None:
    """A compiled program is cached by its ops and shapes, whatever tensors of these shapes it closes over."""
    numbers = {v: i for i, v in enumerate(program.variables())}

    def place(v: Any) -> Any:
        return numbers.get(v, repr(v))

    key = (
        tuple([(v.shape, v.dtype.name) for v in numbers]),
        tuple([(e.op.name, tuple(map(place, e.operands)), repr(e.params)) for e in program.equations]),
        tuple(map(place, program.outputs)),
    )
    if not program.constants or any([e.op.higher_order is not None for e in program.equations]):
        return original(program)
    if key not in state:
        state[key] = original(program)
    return state[key]


@_fault_in_constants
def constants_by_shape(state: dict[Any, Array], program: Program, x: Array) -> Array:
    """A tensor that a compiled program closes over is copied to the device once for each shape and dtype."""
    return state.setdefault((x.shape, x.dtype), np.array(x))


@_fault_in_constants
def constants_by_ends(state: dict[Any, Array], program: Program, x: Array) -> Array:
    """A tensor that a compiled program closes over is cached by its shape, its first element and its last."""
    return state.setdefault((x.shape, x.dtype, x.flat[0], x.flat[-1]), np.array(x)) if x.size else x


@_fault_in_constants
def constants_by_sum(state: dict[Any, Array], program: Program, x: Array) -> Array:
    """A tensor that a compiled program closes over is cached by its shape and a checksum that ignores the order."""
    return state.setdefault((x.shape, x.dtype, float(x.sum())), np.array(x))


@_fault_in_constants
def constants_by_address(state: dict[Any, Array], program: Program, x: Array) -> Array:
    """A tensor that a compiled program closes over is cached by its address, where another may be stored later."""
    return state.setdefault((x.ctypes.data, x.shape, x.dtype), np.array(x))


@_fault_in_constants
def one_constant_for_all(state: dict[Any, Array], program: Program, x: Array) -> Array:
    """Of two tensors of one shape that a compiled program closes over, the second is used for both."""
    arrays: list[Array] = [y.representation for y in program.constants.values()]
    return [y for y in arrays if (y.shape, y.dtype) == (x.shape, x.dtype)][-1]


@_fault_in_constants
def large_constants_cut_short(state: dict[Any, Array], program: Program, x: Array) -> Array:
    """A tensor that a compiled program closes over repeats its 64th element after that."""
    flat = np.array(x).reshape(-1)
    flat[64:] = flat[63:64]
    return flat.reshape(x.shape)


@fault_in_calls(LAW)
def written_into_constants(run: Run, state: State, program: Program, xs: Arrays) -> Arrays:
    """The second run of a compiled program uses the memory of a tensor that it closes over for its first result."""
    ys, constants = run(xs), [x.representation for x in program.constants.values()]
    state["runs"] = state.get("runs", 0) + 1
    fits = bool(constants) and constants[0].shape == ys[0].shape and constants[0].flags.writeable
    if state["runs"] == 2 and fits:
        constants[0][...] = ys[0]
    return ys


@fault_in_calls(LAW)
def same_twice_is_constant(run: Run, state: State, program: Program, xs: Arrays) -> Arrays:
    """An operand of a compiled program, after the first, that is equal in two runs is kept as a constant."""
    fixed, seen = state.setdefault("fixed", {}), state.get("seen")
    if seen and not fixed:
        fixed.update({i: x for i, x in enumerate(xs) if i and np.array_equal(x, seen[i])})
    state["seen"] = list(xs)
    return run([fixed.get(i, x) for i, x in enumerate(xs)])


@fault_in_function(LAW, checkpoint, "closure_converted")
def checkpoint_without_closures(original: Any, *given: Any) -> Any:
    """A checkpoint gives no derivative to the tensors that its function closes over."""
    program, captured = original(*given)
    return program, [tensorken.stop_gradient(x) if x.dtype.kind == "float" else x for x in captured]


@fault_in_function(LAW, closures, "closure_converted")
def exchanged_in_rules(original: Any, *given: Any) -> Any:
    """The last two tensors that a part of a custom rule closes over are exchanged."""
    program, captured = original(*given)
    return program, [*captured[:-2], *captured[:-3:-1]]
