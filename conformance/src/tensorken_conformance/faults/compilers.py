"""Compilers: compiler plugins for numpy with one error each, around a correct one that runs a program op by op."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorken.control_flow.carries import CARRY
from tensorken.control_flow.scan_op import SCAN
from tensorken.programs.execution import with_compiler
from tensorken_conformance.faults.fault import Arrays, Declared, Place, Run, State, fault_by
from tensorken_conformance.faults.recompiling import incomplete_key
from tensorken_conformance.subject import Array
from tensorken_core.language.op import run
from tensorken_core.program.program import Equation, Literal, Program, Variable
from tensorken_numpy.backend import Numpy

Step = Callable[[Equation, list[Array]], Any]
"""The result of an equation, or a tuple of its results, from its operands."""

Compile = Callable[..., Run]
"""A compiler of all programs; with `step` it runs each equation by that."""


def correct_compiler(backend: Numpy, program: Program, step: Step | None = None) -> Run:
    """Run the equations in sequence; each call makes new values, and writes no array."""
    one = step or functools.partial(run_equation, backend)
    known = {v: x.representation for v, x in program.constants.items()}
    for v in [v for e in program.equations for v in e.operands] + list(program.outputs):
        if isinstance(v, Literal):
            known[v] = backend.full(v.shape, v.value, v.dtype)

    def called(xs: Arrays) -> Arrays:
        values: dict[Variable, Any] = {**known, **dict(zip(program.inputs, xs, strict=True))}
        for equation in program.equations:
            ys = one(equation, [values[v] for v in equation.operands])
            values.update(zip(equation.results, (ys,) if equation.op.results == 1 else ys, strict=True))
        return [values[v] for v in program.outputs]

    return called


def run_equation(backend: Numpy, equation: Equation, operands: list[Array]) -> Any:
    """The result of an equation, as the backend computes it."""
    return run(backend, equation.op, operands, equation.params)


def fault_in_compiler(law: str) -> Callable[[Declared], Declared]:
    """Declare a fault of a compiler plugin, on numpy's backend.

    The function receives a correct compiler, the program, the backend, and a dict that lives as long as the plugin.
    """

    def patch(wrong: Callable[..., Run]) -> Place:
        state = State()

        def compiler(program: Program, backend: Any) -> Run | None:
            if not isinstance(backend, Numpy):
                return None
            return wrong(functools.partial(correct_compiler, backend), program, backend, state)

        return with_compiler(compiler, wrong.__name__)

    return fault_by(patch, law)


def fault_in_step(law: str) -> Callable[[Declared], Declared]:
    """Declare a fault of a compiler plugin in single equations.

    The function receives the correct step, the equation and its operands.
    """

    def declare(wrong: Declared) -> Declared:
        def compiled(original: Compile, program: Program, backend: Numpy, state: State) -> Run:
            return original(program, functools.partial(wrong, functools.partial(run_equation, backend)))

        fault_in_compiler(law)(functools.update_wrapper(compiled, wrong))
        return wrong

    return declare


# ---- single equations ------------------------------------------------------------------------------------------


@fault_in_compiler("programs.compiled")
def pad_without_its_condition(original: Compile, program: Program, backend: Numpy, state: State) -> Run:
    """A compiler fills the pads of a value that it has just computed with the neighbouring elements."""
    computed = {v for e in program.equations for v in e.results}

    def step(equation: Equation, operands: list[Array]) -> Any:
        if equation.op.name == "pad" and equation.operands[0] in computed and operands[0].size:
            return np.pad(operands[0], equation.params[0], mode="edge")
        return run_equation(backend, equation, operands)

    return original(program, step)


@fault_in_step("programs.compiled")
def columns_read_as_rows(original: Step, equation: Equation, operands: list[Array]) -> Any:
    """A compiler reads a transposed operand of a product with the strides of one that is not."""
    if equation.op.name == "fused_multiply_add":
        operands = [
            x.ravel("K").reshape(x.shape) if min(x.strides, default=1) > 0 and not x.flags.c_contiguous else x
            for x in operands
        ]
    return original(equation, operands)


@fault_in_step("programs.compiled")
def leading_dimension_of_the_crop(original: Step, equation: Equation, operands: list[Array]) -> Any:
    """A compiler reads a cropped matrix as if its rows followed each other without gaps."""
    if equation.op.elementwise:
        operands = [_without_gaps(x) for x in operands]
    return original(equation, operands)


def _without_gaps(x: Array) -> Array:
    plain = np.empty(x.shape, x.dtype).strides
    in_order = list(x.strides) == sorted(x.strides, reverse=True)
    gaps = x.ndim > 1 and x.size > 0 and in_order and x.strides[-1] > 0
    return np.lib.stride_tricks.as_strided(x, strides=plain) if gaps and x.strides > plain else x


@fault_in_step("programs.compiled")
def sum_without_the_rest(original: Step, equation: Equation, operands: list[Array]) -> Any:
    """A compiler adds four elements at a time and leaves out those after the last four."""
    if equation.op.name == "sum" and len(equation.params[0]) == 1:
        (axis,) = equation.params[0]
        whole = operands[0].shape[axis] // 4 * 4
        if whole:
            operands = [operands[0].take(range(whole), axis)]
    return original(equation, operands)


@fault_in_step("programs.compiled")
def maximum_loses_nan(original: Step, equation: Equation, operands: list[Array]) -> Any:
    """A compiler takes the number of a number and NaN for their maximum or minimum."""
    functions = {"maximum": np.fmax, "minimum": np.fmin}
    if equation.op.name in functions and operands[0].dtype.kind == "f":
        return functions[equation.op.name](*operands)
    return original(equation, operands)


@fault_in_step("programs.loops")
def last_step_of_a_scan(original: Step, equation: Equation, operands: list[Array]) -> Any:
    """A compiler ends a scan of two or more steps one step early: carries are those of the step before."""
    results = original(equation, operands)
    if equation.op is not SCAN or equation.params[3] < 2:
        return results
    body, going_in, coming_out, length, reverse = equation.params
    state = slice(1, None) if reverse else slice(None, -1)
    shorter = [
        x[(*[slice(None)] * spec, state)] if isinstance(spec, int) else x
        for x, spec in zip(operands, going_in, strict=True)
    ]
    params = (body, going_in, coming_out, length - 1, reverse)
    early = original(Equation(SCAN, equation.operands, params, equation.results), shorter)
    return tuple([a if spec == CARRY else b for a, b, spec in zip(early, results, coming_out, strict=True)])


# ---- caches with too little in their keys ----------------------------------------------------------------------


@fault_in_compiler("programs.recompiled")
def cached_without_dtypes(original: Compile, program: Program, backend: Numpy, state: State) -> Run:
    """A compiler finds its machine code by ops and shapes, whatever the dtypes."""
    return state.setdefault(incomplete_key(program, "dtypes"), original(program))  # type: ignore[no-any-return]


@fault_in_compiler("programs.recompiled")
def cached_without_params(original: Compile, program: Program, backend: Numpy, state: State) -> Run:
    """A compiler finds its machine code by ops, shapes and dtypes, whatever the params."""
    return state.setdefault(incomplete_key(program, "params"), original(program))  # type: ignore[no-any-return]


@fault_in_compiler("programs.recompiled")
def cached_without_constants(original: Compile, program: Program, backend: Numpy, state: State) -> Run:
    """A compiler finds its machine code by equations, whatever the captured tensors in it."""
    return state.setdefault(incomplete_key(program, "constants"), original(program))  # type: ignore[no-any-return]


# ---- memory ----------------------------------------------------------------------------------------------------


@fault_in_compiler("programs.compiled")
def results_in_one_arena(original: Compile, program: Program, backend: Numpy, state: State) -> Run:
    """A compiler has one arena for all calls of a program, and its results lie in it."""
    called, arena = original(program), dict[int, Array]()

    def run_in_arena(xs: Arrays) -> Arrays:
        ys = called(xs)
        for i, y in enumerate(ys):
            arena.setdefault(i, np.empty_like(y))[...] = y
        return [arena[i] for i in range(len(ys))]

    return run_in_arena


@fault_in_compiler("programs.recompiled")
def result_is_the_input(original: Compile, program: Program, backend: Numpy, state: State) -> Run:
    """A compiler gives an input that is a result back as it is, and writes the result of the next call into it."""
    called = original(program)
    passed = [i for i, v in enumerate(program.outputs) if v in program.inputs]
    memory: dict[int, Array] = {}

    def run_in_memory(xs: Arrays) -> Arrays:
        ys = list(called(xs))
        for i in passed:
            y = memory.setdefault(i, ys[i])
            if y is not ys[i] and y.flags.writeable:
                y[...] = ys[i]
                ys[i] = y
        return ys

    return run_in_memory


@fault_in_compiler("programs.recompiled")
def donation_of_any_argument(original: Compile, program: Program, backend: Numpy, state: State) -> Run:
    """A compiler writes its first result into an argument of the same shape and dtype, donated or not."""
    called = original(program)

    def run_in_argument(xs: Arrays) -> Arrays:
        ys = list(called(xs))
        for x in xs if ys else ():
            fits = (x.shape, x.dtype) == (ys[0].shape, ys[0].dtype) and x.flags.writeable
            if fits and x is not ys[0]:
                x[...] = ys[0]
                return [x, *ys[1:]]
        return ys

    return run_in_argument


@fault_in_compiler("lifetime.threads")
def scratch_of_all_threads(original: Compile, program: Program, backend: Numpy, state: State) -> Run:
    """A compiler keeps intermediate results of a program in one place, which all threads write."""
    scratch: dict[Variable, Array] = {}
    step = functools.partial(run_equation, backend)

    def shared(equation: Equation, operands: list[Array]) -> Any:
        found = [scratch.get(v, x) for v, x in zip(equation.operands, operands, strict=True)]
        ys = step(equation, found)
        scratch.update(zip(equation.results, (ys,) if equation.op.results == 1 else ys, strict=True))
        return ys

    return original(program, shared)


@fault_in_compiler("programs.compiled")
def outputs_counted_from_one(original: Compile, program: Program, backend: Numpy, state: State) -> Run:
    """A compiler exchanges the first two results of a program, if these have one shape and dtype."""
    called = original(program)
    facts = [(v.shape, v.dtype) for v in itertools.islice(program.outputs, 2)]

    def exchanged(xs: Arrays) -> Arrays:
        first, *rest = called(xs)
        return [rest[0], first, *rest[1:]] if facts[:1] == facts[1:] else [first, *rest]

    return exchanged if program.outputs else called
