"""Closures: a tensor that a function closes over is dropped, is taken for another one, or keeps its first value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tensorken
from tensorken_conformance.faults.changes import attribute
from tensorken_conformance.faults.fault import Compile, Course, Run, fault, fault_in_calls
from tensorken_conformance.subject import Array
from tensorken_core.program.program import Program
from tensorken_core.tensor.tensor import Tensor
from tensorken_core.transforms import checkpoint as rematerialize, closures


def _with_constants(program: Program, change: Callable[[Array], Array]) -> Any:
    """The program with other values for the tensors that it closes over."""
    constants = {
        v: Tensor(x.interpreter, change(x.representation), v.shape, v.dtype)
        for v, x in program.constants.items()
    }
    return program.changed(constants=constants)


@fault("programs.closures", method="compile")
def programs_by_text(right: Compile, kept: dict[Any, Run | None], program: Program) -> Run | None:
    """A compiled program is kept by its ops and shapes, whatever tensors of these shapes it closes over."""
    numbers = {v: i for i, v in enumerate(program.variables())}

    def place(v: Any) -> Any:
        return numbers.get(v, repr(v))

    key = (
        tuple([(v.shape, v.dtype.name) for v in numbers]),
        tuple([(e.op.name, tuple(map(place, e.operands)), repr(e.params)) for e in program.equations]),
        tuple(map(place, program.outputs)),
    )
    if not program.constants or any([e.op.higher_order is not None for e in program.equations]):
        return right(program)
    if key not in kept:
        kept[key] = right(program)
    return kept[key]


@fault("programs.closures", method="compile")
def constants_by_shape(right: Compile, kept: dict[Any, Array], program: Program) -> Run | None:
    """A tensor that a compiled program closes over is copied to the device once for each shape and dtype."""
    return right(_with_constants(program, lambda x: kept.setdefault((x.shape, x.dtype), np.array(x))))


@fault("programs.closures", method="compile")
def constants_by_ends(right: Compile, kept: dict[Any, Array], program: Program) -> Run | None:
    """A tensor that a compiled program closes over is known by its shape, its first element and its last."""

    def known(x: Array) -> Array:
        if not x.size:
            return x
        return kept.setdefault((x.shape, x.dtype, x.flat[0], x.flat[-1]), np.array(x))

    return right(_with_constants(program, known))


@fault("programs.closures", method="compile")
def constants_by_sum(right: Compile, kept: dict[Any, Array], program: Program) -> Run | None:
    """A tensor that a compiled program closes over is known by its shape and a checksum in which order is no matter."""
    return right(
        _with_constants(program, lambda x: kept.setdefault((x.shape, x.dtype, float(x.sum())), np.array(x)))
    )


@fault("programs.closures", method="compile")
def constants_by_address(right: Compile, kept: dict[Any, Array], program: Program) -> Run | None:
    """A tensor that a compiled program closes over is known by its place in memory, where another may lie later."""
    return right(
        _with_constants(program, lambda x: kept.setdefault((x.ctypes.data, x.shape, x.dtype), np.array(x)))
    )


@fault("programs.closures", method="compile")
def one_constant_for_all(right: Compile, program: Program) -> Run | None:
    """Of two tensors of one shape that a compiled program closes over, the second is taken for both."""
    last = {
        (x.representation.shape, x.representation.dtype): x.representation for x in program.constants.values()
    }
    return right(_with_constants(program, lambda x: last[x.shape, x.dtype]))


@fault("programs.closures", method="compile")
def large_constants_cut_short(right: Compile, program: Program) -> Run | None:
    """Of a tensor of more than 64 elements that a compiled program closes over, the rest is the last of these."""

    def cut(x: Array) -> Array:
        flat = np.array(x).reshape(-1)
        flat[64:] = flat[63:64]
        return flat.reshape(x.shape)

    return right(_with_constants(program, lambda x: cut(x) if x.size > 64 else x))


@fault_in_calls("programs.closures")
def written_into_constants(
    run: Run, kept: dict[Any, Any], program: Program, xs: Sequence[Array]
) -> Sequence[Array]:
    """The second run of a compiled program uses the memory of a tensor that it closes over for its first result."""
    ys, constants = run(xs), [x.representation for x in program.constants.values()]
    kept["runs"] = kept.get("runs", 0) + 1
    if kept["runs"] == 2 and constants and constants[0].shape == ys[0].shape and constants[0].flags.writeable:
        constants[0][...] = ys[0]
    return ys


@fault_in_calls("programs.closures")
def same_twice_is_constant(
    run: Run, kept: dict[Any, Any], program: Program, xs: Sequence[Array]
) -> Sequence[Array]:
    """An operand of a compiled program, beside others, that has been the same in two runs is taken for a constant."""
    fixed, seen = kept.setdefault("fixed", {}), kept.get("seen")
    if seen and not fixed:
        fixed.update({i: x for i, x in enumerate(xs) if i and np.array_equal(x, seen[i])})
    kept["seen"] = list(xs)
    return run([fixed.get(i, x) for i, x in enumerate(xs)])


def _captured(module: Any, change: Callable[[list[Tensor]], list[Tensor]]) -> Course:
    """Other tensors are captured by the functions that a module converts."""
    right = module.closure_converted

    def wrong(*given: Any) -> Any:
        program, captured = right(*given)
        return program, change(captured)

    with attribute(module, "closure_converted", wrong):
        yield None


@fault("programs.closures")
def checkpoint_without_closures() -> Course:
    """A checkpoint gives no derivative to what its function closes over."""
    yield from _captured(
        rematerialize, lambda xs: [tensorken.stop_gradient(x) if x.dtype.kind == "float" else x for x in xs]
    )


@fault("programs.closures")
def exchanged_in_rules() -> Course:
    """The last two tensors that a part of a custom rule closes over are exchanged."""
    yield from _captured(closures, lambda captured: [*captured[:-2], *captured[:-3:-1]])
