"""The op of `scan`, which runs a program a known number of times, and its derivative and batching rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

from tensorken.compilation.call_op import (
    apply_higher_order,
    batched_program,
    forward_backward_of,
    jvp_program,
)
from tensorken.control_flow.carries import (
    CARRY,
    CONSTANT,
    ArgSpec,
    ArgSpecs,
    Flags,
    active_outputs,
    axes_of,
    carries,
    carry_fixpoint,
    carry_pairs,
    check_loop,
    constant_flags,
    specs_at,
)
from tensorken.programs.execution import prepared
from tensorken_core.errors import ProgramError
from tensorken_core.language.higher_order import SubprogramLayout
from tensorken_core.language.op import OPS, Op, register, run
from tensorken_core.language.shapes import Shape
from tensorken_core.levels.batch import Axis
from tensorken_core.levels.reverse import transposing
from tensorken_core.levels.trace import traced
from tensorken_core.program.program import Variable
from tensorken_core.tensor.tensor import Tensor

BLOCK_SIZE = 64
"""The number of values that are concatenated at once; the default body concatenates two at a time."""


def _shapes_of_scan(*args: Any) -> tuple[Shape, ...]:
    program, _, outputs, length, _ = args[-5:]
    return tuple(
        [
            v.shape if spec == CARRY else (*v.shape[:spec], length, *v.shape[spec:])
            for v, spec in zip(program.outputs, outputs, strict=True)
        ]
    )


def _dtypes_of_scan(*args: Any) -> tuple[Any, ...]:
    return tuple([v.dtype for v in args[-5].outputs])


def _scan(*args: Any) -> tuple[Tensor, ...]:
    """On a backend: run the prepared step, once for each slice."""
    *xs, program, inputs, outputs, length, reverse = args
    backend = xs[0].interpreter
    step, later = prepared(program, backend), prepared(program, backend, is_checked=True)
    values = [x.representation for x in xs]
    carries_in = carries(range(len(xs)), inputs)
    carries_out = carries(range(len(outputs)), outputs)
    sliced = [(i, _Slices(backend, xs[i], spec)) for i, spec in enumerate(inputs) if isinstance(spec, int)]
    stacks = [(i, _Stack(backend, spec, reverse)) for i, spec in enumerate(outputs) if isinstance(spec, int)]
    for k in reversed(range(length)) if reverse else range(length):
        for i, slices in sliced:
            values[i] = slices.at(k)
        ys = step(values)
        step = later  # the same dtypes and shapes
        for i, index in zip(carries_in, carries_out, strict=True):
            values[i] = backend.settle(ys[index])
        for index, stack in stacks:
            stack.push(backend.settle(ys[index]))
        del ys
    shapes = _shapes_of_scan(*args)
    carried = iter([values[i] for i in carries_in])
    stacked = iter([stack for _, stack in stacks])
    return tuple(
        [
            Tensor(
                backend,
                next(carried) if spec == CARRY else next(stacked).stacked_value(shape, v.dtype),
                shape,
                v.dtype,
            )
            for v, spec, shape in zip(program.outputs, outputs, shapes, strict=True)
        ]
    )


class _Slices:
    """The slices of a value along an axis, which is moved to the front, so that each slice is contiguous."""

    def __init__(self, backend: Any, x: Tensor, axis: int) -> None:
        self.backend = backend
        self.shape = (*x.shape[:axis], *x.shape[axis + 1 :])
        self.rest = [(0, n) for n in self.shape]
        order = (axis, *[i for i in range(x.ndim) if i != axis])
        self.value = _permuted(backend, x.representation, order)

    def at(self, k: int) -> Any:
        """The slice at an index."""
        piece = run(self.backend, OPS["crop"], (self.value,), (((k, k + 1), *self.rest),))
        return run(self.backend, OPS["reshape"], (piece,), (self.shape,))


class _Stack:
    """Values stacked along a new first axis, in blocks of blocks; the axis is moved at the end.

    A slice along the first axis is contiguous in memory, so a backend may copy it in one piece.
    """

    def __init__(self, backend: Any, axis: int, reverse: bool) -> None:
        self.backend = backend
        self.axis = axis
        self.reverse = reverse
        self.levels: list[list[Any]] = [[]]  # a block joins BLOCK_SIZE blocks of the previous level

    def push(self, y: Any) -> None:
        """Add one value."""
        block = run(self.backend, OPS["reshape"], (y,), ((1, *self.backend.shape(y)),))
        for level in self.levels:
            level.append(block)
            if len(level) < BLOCK_SIZE:
                return
            block = self._joined(level)
            level.clear()
        self.levels.append([block])

    def stacked_value(self, shape: Shape, dtype: Any) -> Any:
        """All values, stacked to this shape."""
        blocks: list[Any] = []
        for level in self.levels:
            blocks = [*level, *([self._joined(blocks)] if blocks else [])]
        if not blocks:
            return self.backend.full(shape, 0, dtype)
        order = (*range(1, self.axis + 1), 0, *range(self.axis + 1, len(shape)))
        return _permuted(self.backend, self._joined(blocks), order)

    def _joined(self, blocks: list[Any]) -> Any:
        if len(blocks) == 1:
            return blocks[0]
        ordered = blocks[::-1] if self.reverse else blocks
        return self.backend.settle(run(self.backend, OPS["concatenate"], ordered, (0,)))


def _permuted(backend: Any, x: Any, order: tuple[int, ...]) -> Any:
    """A value with permuted axes; the value itself if the order is the identity."""
    return x if order == tuple(range(len(order))) else run(backend, OPS["permute"], (x,), (order,))


class _ScanRules:
    """JVP, VJP and batching rules: each is a scan of another program."""

    def jvp(self, active: Flags, params: tuple[Any, ...]) -> tuple[Op, Any, Flags, Flags]:
        program, inputs, outputs, length, reverse = params
        pushed, input_flags, pattern = carry_fixpoint(
            lambda flags, instantiate: jvp_program(program, flags, instantiate), active, inputs, outputs
        )
        specs = (*inputs, *compress(inputs, input_flags)), (*outputs, *compress(outputs, pattern))
        return SCAN, (pushed, *specs, length, reverse), input_flags, pattern

    def with_residuals(self, active: Flags, params: tuple[Any, ...]) -> tuple[Op, Any, int]:
        key = ("record", active, params[1:], transposing.get())
        op, recorded = params[0].once(key, lambda: _recorded_scan(params, active))
        return op, recorded, len(params[2])

    def batch(self, axis: Axis, batched: Flags, params: tuple[Any, ...]) -> tuple[Op, Any, Flags, Flags]:
        program, inputs, outputs, length, reverse = params
        batched_step, input_flags, pattern = carry_fixpoint(
            lambda flags, instantiate: batched_program(program, axis, flags, instantiate),
            batched,
            inputs,
            outputs,
        )
        count = axis.new_axes
        specs = _with_new_axes(count, inputs, input_flags), _with_new_axes(count, outputs, pattern)
        return SCAN, (batched_step, *specs, length, reverse), input_flags, pattern

    def check(self, operands: Sequence[Any], params: tuple[Any, ...]) -> None:
        program, inputs, outputs, length, reverse = params
        check_loop("scan", operands, inputs, program, outputs, length)
        if type(reverse) is not bool:
            raise ProgramError(f"scan: reverse must be a bool, got {reverse!r:.40}")

    def layout(self, params: tuple[Any, ...]) -> SubprogramLayout:
        program, inputs, outputs, length, reverse = params
        return SubprogramLayout(
            (program,),
            constant_flags(inputs),
            carries=carry_pairs(inputs, outputs),
            is_loop=True,
            slices=axes_of(inputs),
            stacks=axes_of(outputs),
            length=length,
            reverse=reverse,
        )

    def with_programs(
        self, params: Any, programs: Any, inputs: Sequence[int | None], outputs: Sequence[int]
    ) -> tuple[Any, ...]:
        _, carries_in, carries_out, *steps = params
        return (*programs, specs_at(inputs, carries_in), specs_at(outputs, carries_out), *steps)


def _with_new_axes(count: int, specs: ArgSpecs, batched: Flags) -> ArgSpecs:
    """The specs of values, some of which have new axes in front."""
    return tuple(
        [
            spec + count if flag and isinstance(spec, int) else spec
            for spec, flag in zip(specs, batched, strict=True)
        ]
    )


def _recorded_scan(params: tuple[Any, ...], active: Flags) -> tuple[Op, tuple[Any, ...]]:
    """A scan that also stacks the residuals of each step; its derivative is a scan in the opposite direction."""
    program, inputs, outputs, length, reverse = params
    _, flags, pattern = carry_fixpoint(
        lambda flags, instantiate: (program, active_outputs(program, flags, instantiate)),
        active,
        inputs,
        outputs,
    )
    seeds = [i for i, v in enumerate(program.outputs) if pattern[i] and v.dtype.kind == "float"]
    invariant = [i for i, spec in enumerate(inputs) if spec == CONSTANT]
    passes = forward_backward_of(program, flags, seeds, invariant)
    count, all_outputs = len(inputs), passes.forward.outputs

    extra_outputs: list[Variable] = []
    # For each operand of the backward program, its index among operands and results, and its spec.
    sources: list[tuple[int, ArgSpec]] = []
    for index in passes.residuals:
        spec = (*inputs, *outputs, *[CARRY] * len(all_outputs))[index]
        if spec == CARRY:  # it differs between steps and is not stacked yet
            sources.append((count + len(outputs) + len(extra_outputs), 0))
            extra_outputs.append((*passes.forward.inputs, *all_outputs)[index])
        else:
            sources.append((index, spec))
    forward = passes.forward.changed(outputs=(*all_outputs[: len(outputs)], *extra_outputs))

    input_of_output = dict(
        zip(carries(range(len(outputs)), outputs), carries(range(count), inputs), strict=True)
    )
    carried = [i for i in seeds if outputs[i] == CARRY]
    stacked = [i for i in seeds if outputs[i] != CARRY]
    summed = [i for i in passes.with_cotangents if inputs[i] == CONSTANT]
    sliced = [i for i in passes.with_cotangents if inputs[i] not in (CONSTANT, CARRY)]

    def backward_step(*values: Tensor) -> list[Tensor]:
        """A step: from the cotangents of its outputs to the cotangents of its inputs, summed for constants."""
        rest = iter(values)
        cotangents_of = {i: next(rest) for i in carried}
        sums = [next(rest) for _ in summed]
        cotangents_of.update({i: next(rest) for i in stacked})
        pulled = passes.backward.on([*[cotangents_of[i] for i in seeds], *rest])
        input_cotangents = dict(zip(passes.with_cotangents, pulled, strict=True))
        return [
            *[
                input_cotangents[j]
                if (j := input_of_output[i]) in input_cotangents
                else cotangents_of[i].zeros_like()
                for i in carried
            ],
            *[total + input_cotangents[i].astype(total.dtype) for total, i in zip(sums, summed, strict=True)],
            *[input_cotangents[i] for i in sliced],
        ]

    like = [
        *[program.outputs[i] for i in carried],
        *[Variable(v.shape, v.dtype.wide) for v in [program.inputs[i] for i in summed]],
        *[program.outputs[i] for i in stacked],
        *passes.backward.inputs[len(seeds) :],
    ]
    backward = (
        traced(backward_step, like, program.backend, f"vjp of {program.name}"),
        (*[CARRY] * (len(carried) + len(summed)), *[outputs[i] for i in stacked], *[r for _, r in sources]),
        (*[CARRY] * (len(carried) + len(summed)), *[inputs[i] for i in sliced]),
        length,
        not reverse,
    )

    def pull_back(cotangents: Any, ys: Any, xs: Any, params: Any) -> list[Tensor | None]:
        """The cotangents of the operands."""
        result: list[Tensor | None] = [None] * len(xs)
        if not length:  # the carries are unchanged
            for i in carried:
                result[input_of_output[i]] = cotangents[i]
            return result
        if not passes.with_cotangents:
            return result
        cotangents_of = {i: ys[i].zeros_like() if cotangents[i] is None else cotangents[i] for i in seeds}
        operands = [
            *[cotangents_of[i] for i in carried],
            *[xs[i].astype(xs[i].dtype.wide).zeros_like() for i in summed],
            *[cotangents_of[i] for i in stacked],
            *[(*xs, *ys)[index] for index, _ in sources],
        ]
        pulled = apply_higher_order(SCAN, operands, backward)
        for i, t in zip([*[input_of_output[i] for i in carried], *summed, *sliced], pulled, strict=True):
            result[i] = t.astype(xs[i].dtype)  # sums of narrow floats are in float32
        return result

    recorded = (forward, inputs, (*outputs, *[0] * len(extra_outputs)), length, reverse)
    return replace(SCAN, vjp_all=pull_back), recorded


SCAN = register(
    Op(
        "scan",
        None,
        shape=_shapes_of_scan,
        dtype=_dtypes_of_scan,
        params=("program", "data", "data", "size", "data"),
        param_names=("program", "inputs", "outputs", "length", "reverse"),
        body=_scan,
        results=None,
        higher_order=_ScanRules(),
    )
)
"""A program run a known number of times. Params: the program, the specs of operands and of results, the number of
steps, whether the last slice comes first."""
