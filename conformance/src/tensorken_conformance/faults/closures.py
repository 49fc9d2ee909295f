"""Closures: a tensor that a function closes over is dropped, is taken for another one, or keeps its first value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import tensorken
from tensorken_conformance.faults.fault import Course, fault
from tensorken_conformance.subject import Array
from tensorken_core.tensor.tensor import Tensor
from tensorken_core.transforms import checkpoint as rematerialize, closures
from tensorken_numpy.backend import Numpy

Run = Callable[[Sequence[Array]], Sequence[Array]]


def _with_constants(program: Any, change: Callable[[Array], Array]) -> Any:
    """The program with other values for the tensors that it closes over."""
    constants = {
        v: Tensor(x.interpreter, change(x.representation), v.shape, v.dtype)
        for v, x in program.constants.items()
    }
    return program.changed(constants=constants)


@fault("programs.closures")
class ProgramsByText(Numpy):
    """A compiled program is kept by its ops and shapes, whatever tensors of these shapes it closes over."""

    def __init__(self) -> None:
        self.known: dict[Any, Run | None] = {}

    def compile(self, program: Any) -> Run | None:
        numbers = {v: i for i, v in enumerate(program.variables())}

        def place(v: Any) -> Any:
            return numbers.get(v, repr(v))

        key = (
            tuple([(v.shape, v.dtype.name) for v in numbers]),
            tuple([(e.op.name, tuple(map(place, e.operands)), repr(e.params)) for e in program.equations]),
            tuple(map(place, program.outputs)),
        )
        if not program.constants or any([e.op.higher_order is not None for e in program.equations]):
            return super().compile(program)
        if key not in self.known:
            self.known[key] = super().compile(program)
        return self.known[key]


@fault("programs.closures")
class ConstantsByShape(Numpy):
    """A tensor that a compiled program closes over is copied to the device once for each shape and dtype."""

    def __init__(self) -> None:
        self.copies: dict[Any, Array] = {}

    def compile(self, program: Any) -> Run | None:
        return super().compile(
            _with_constants(program, lambda x: self.copies.setdefault((x.shape, x.dtype), np.array(x)))
        )


@fault("programs.closures")
class ConstantsByEnds(Numpy):
    """A tensor that a compiled program closes over is known by its shape, its first element and its last."""

    def __init__(self) -> None:
        self.copies: dict[Any, Array] = {}

    def compile(self, program: Any) -> Run | None:
        def known(x: Array) -> Array:
            if not x.size:
                return x
            return self.copies.setdefault((x.shape, x.dtype, x.flat[0], x.flat[-1]), np.array(x))

        return super().compile(_with_constants(program, known))


@fault("programs.closures")
class ConstantsBySum(Numpy):
    """A tensor that a compiled program closes over is known by its shape and a checksum in which order is no matter."""

    def __init__(self) -> None:
        self.copies: dict[Any, Array] = {}

    def compile(self, program: Any) -> Run | None:
        return super().compile(
            _with_constants(
                program, lambda x: self.copies.setdefault((x.shape, x.dtype, float(x.sum())), np.array(x))
            )
        )


@fault("programs.closures")
class ConstantsByAddress(Numpy):
    """A tensor that a compiled program closes over is known by its place in memory, where another may lie later."""

    def __init__(self) -> None:
        self.copies: dict[Any, Array] = {}

    def compile(self, program: Any) -> Run | None:
        def known(x: Array) -> Array:
            return self.copies.setdefault((x.ctypes.data, x.shape, x.dtype), np.array(x))

        return super().compile(_with_constants(program, known))


@fault("programs.closures")
class OneConstantForAll(Numpy):
    """Of two tensors of one shape that a compiled program closes over, the second is taken for both."""

    def compile(self, program: Any) -> Run | None:
        last = {
            (x.representation.shape, x.representation.dtype): x.representation
            for x in program.constants.values()
        }
        return super().compile(_with_constants(program, lambda x: last[x.shape, x.dtype]))


@fault("programs.closures")
class LargeConstantsCutShort(Numpy):
    """Of a tensor of more than 64 elements that a compiled program closes over, the rest is the last of these."""

    def compile(self, program: Any) -> Run | None:
        def cut(x: Array) -> Array:
            flat = np.array(x).reshape(-1)
            flat[64:] = flat[63:64]
            return flat.reshape(x.shape)

        return super().compile(_with_constants(program, lambda x: cut(x) if x.size > 64 else x))


@fault("programs.closures")
class WrittenIntoConstants(Numpy):
    """The second run of a compiled program uses the memory of a tensor that it closes over for its first result."""

    def compile(self, program: Any) -> Run | None:
        run = super().compile(program)
        constants = [x.representation for x in program.constants.values()]
        if run is None or not constants:
            return run
        runs: list[int] = []

        def again(xs: Sequence[Array]) -> Sequence[Array]:
            ys = run(xs)
            runs.append(1)
            if len(runs) == 2 and constants[0].shape == ys[0].shape and constants[0].flags.writeable:
                constants[0][...] = ys[0]
            return ys

        return again


@fault("programs.closures")
class SameTwiceIsConstant(Numpy):
    """An operand of a compiled program, beside others, that has been the same in two runs is taken for a constant."""

    def compile(self, program: Any) -> Run | None:
        run = super().compile(program)
        if run is None or len(program.inputs) < 2:
            return run
        seen: list[Any] = []
        fixed: dict[int, Array] = {}

        def again(xs: Sequence[Array]) -> Sequence[Array]:
            if seen and not fixed:
                fixed.update({i: x for i, x in enumerate(xs) if i and np.array_equal(x, seen[-1][i])})
            seen[:] = [list(xs)]
            return run([fixed.get(i, x) for i, x in enumerate(xs)])

        return again


@contextmanager
def _conversion(module: Any, change: Callable[[list[Tensor]], list[Tensor]]) -> Iterator[None]:
    """Within the block other tensors are captured by the functions that a module converts."""
    right = module.closure_converted

    def wrong(*given: Any) -> Any:
        program, captured = right(*given)
        return program, change(captured)

    module.closure_converted = wrong
    try:
        yield
    finally:
        module.closure_converted = right


@fault("programs.closures")
def checkpoint_without_closures() -> Course:
    """A checkpoint gives no derivative to what its function closes over."""

    def cut(captured: list[Tensor]) -> list[Tensor]:
        return [tensorken.stop_gradient(x) if x.dtype.kind == "float" else x for x in captured]

    with _conversion(rematerialize, cut):
        yield None


@fault("programs.closures")
def exchanged_in_rules() -> Course:
    """The last two tensors that a part of a custom rule closes over are exchanged."""

    def exchanged(captured: list[Tensor]) -> list[Tensor]:
        return [*captured[:-2], *captured[:-3:-1]]

    with _conversion(closures, exchanged):
        yield None
