"""The lowering: kernels of the reference target have the results of the ops that they compute, to the last bit."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.known_programs import REAL
from core.tests.random_programs.draft import Draft
from core.tests.random_programs.drawing import drawn
from core.tests.random_programs.judging import leaves_of
from core.tests.support import Required
from tensorken.kernels.elements import INLINE, ElementWalk
from tensorken.kernels.keeping import Costs, unmoved
from tensorken.kernels.lowering import lower
from tensorken.kernels.positions import with_positions
from tensorken.kernels.reference import ReferenceTarget, can_compute, run_lowered
from tensorken.programs.passes.pipeline import optimised
from tensorken_core.errors import ArgumentError, TensorkenError
from tensorken_core.language.op import OPS
from tensorken_core.program.program import Program
from tensorken_reference.backend import Reference

REFERENCE, REQUIRED = Reference(), Required()
LARGE = 400
"""The most elements of all results of a program that is run element by element."""


def lowerable(program: Program) -> Program | None:
    """The program in required ops; None if it is too large."""
    program = optimised(program, REQUIRED)
    size = sum([math.prod(v.shape) for v in program.variables()])
    return program if size <= LARGE else None


def traced(draft: Draft, steps: Any) -> tuple[Program, list[Any]]:
    """The steps as a program, and its inputs on the reference backend."""
    part = draft.program.only(steps, draft.found)
    leaves = leaves_of(part)
    names = list(leaves)

    def run(*xs: Any) -> list[Any]:
        found = part.run(tk, dict(zip(names, xs, strict=True)))
        return [found[name] for step in part.steps for name in step.names]

    program = tk.trace(run)(*[tk.tensor(x, backend=REQUIRED) for x in leaves.values()])
    inputs = [REFERENCE.new(x.shape, x.reshape(-1).tolist(), tk.tensor(x).dtype) for x in leaves.values()]
    return program, inputs


def lowered_part(seed: int) -> tuple[Program, list[Any]] | None:
    """The small steps of a random program, as one program; what others compute is an input."""
    draft = drawn(seed, whole=seed % 2 == 0)
    kept: list[Any] = []
    for step in draft.steps:
        try:
            program, _ = traced(draft, [*kept, step])
            if lowerable(program) is not None:
                kept.append(step)
        except (TensorkenError, TypeError):  # of a step that is not traced
            continue
    if not kept:
        return None
    program, inputs = traced(draft, kept)
    found = lowerable(program)
    assert found is not None
    return found, inputs


def bits(x: Any) -> Any:
    """Equal for arrays with the same bits, but for those of NaN."""
    numbers = np.array(x.data, {"bool": bool}.get(x.dtype.name, x.dtype.name))
    return x.shape, x.dtype.name, [str(number) for number in numbers.tolist()]


def check(program: Program, inputs: list[Any], target: ReferenceTarget) -> None:
    """Compare kernels with the ops, one by one."""
    found = run_lowered(program, REFERENCE, inputs, target)
    expected = program.replay(REFERENCE, inputs)
    assert [*map(bits, found)] == [*map(bits, expected)], f"{target}\n{program}"


def random_target(rng: random.Random) -> ReferenceTarget:
    """Limits of kernels, narrow ones among them."""
    return ReferenceTarget(rng.choice((4, 5, 8, 100)), rng.choice((10, 40, 1000)))


def check_seeds(seeds: range) -> int:
    """Compare random programs; the number of equations."""
    count = 0
    for seed in seeds:
        found = lowered_part(seed)
        if found is not None:
            program, inputs = found
            check(program, inputs, random_target(random.Random(seed)))
            count += len(program.equations)
    return count


@pytest.mark.feature(58)
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_kernels_of_random_programs_compute_what_their_ops_do(first: int) -> None:
    assert check_seeds(range(first, first + 10)) > 20


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(40, 1000, 40))
def test_kernels_of_many_random_programs_compute_what_their_ops_do(first: int) -> None:
    assert check_seeds(range(first, first + 40)) > 80


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("operands", [4, 8])
def test_kernels_of_programs_compute_what_their_ops_do(name: str, operands: int) -> None:
    program = REAL[name][0]
    rng = random.Random(name)
    inputs = [
        REFERENCE.new(
            v.shape,
            [
                rng.uniform(-1.0, 1.0) if v.dtype.kind == "float" else rng.randrange(2)
                for _ in range(math.prod(v.shape))
            ],
            v.dtype,
        )
        for v in program.inputs
    ]
    check(program, inputs, ReferenceTarget(operands))


# ---- which values one kernel computes ------------------------------------------------------------------------


def groups_of(f: Any, *shapes: tuple[int, ...], target: ReferenceTarget | None = None) -> list[list[str]]:
    """For each kernel of a function the ops of the values that it writes."""
    program = tk.trace(f)(*[tk.zeros(shape, backend=REQUIRED) for shape in shapes])
    lowered = lower(optimised(program, REQUIRED), target or ReferenceTarget())
    return [[lowered.producers[v].op.name for v in group.written] for group in lowered.groups]


@pytest.mark.feature(58)
def test_a_softmax_is_one_kernel() -> None:
    assert len(groups_of(lambda x: tk.softmax(x, 1), (5, 7))) == 1


def test_movement_ops_are_no_kernels() -> None:
    assert groups_of(lambda x, y: x.mT.reshape(2, 6)[::-1] + y, (4, 3), (2, 6)) == [["add"]]


def test_a_sum_is_read_by_a_later_kernel_if_its_rows_differ() -> None:
    written = groups_of(lambda x: (x.sum(0) * 2.0, x.sum(1) + 1.0), (4, 3))
    assert written == [["mul"], ["add"]]
    assert len(groups_of(lambda x: (x / x.sum(0)).sum(1), (4, 3))) == 2


def test_a_reduction_of_one_element_does_not_run_in_the_loop_of_another() -> None:
    """A sum over an axis of size 1 has as many rows as the sum before it, but other elements."""
    sum_ = OPS["sum"]
    program = tk.trace(lambda x: x.apply(sum_, (1,)).apply(sum_, (1,)) * 2.0)(
        tk.ones((3, 4), backend=REQUIRED)
    )
    check(program, [REFERENCE.new((3, 4), [*map(float, range(12))], tk.float32)], ReferenceTarget())


def test_a_call_reads_values_before_they_are_moved() -> None:
    def moved_products(x: Any, y: Any) -> Any:
        return tk.exp(x).mT @ (y + 1.0).reshape(4, 3)[::-1]

    xs = [
        REFERENCE.new(shape, [0.5, -0.25] * (math.prod(shape) // 2), tk.float32) for shape in ((4, 2), (12,))
    ]
    program = optimised(
        tk.trace(moved_products)(*[tk.zeros(x.shape, backend=REFERENCE) for x in xs]), REFERENCE
    )
    producers = {v: e for e in program.equations for v in e.results}
    products = [e for e in program.equations if e.op.name == "fused_multiply_add"]
    calls = {e: [unmoved(x, producers) for x in e.operands] for e in products}
    target = ReferenceTarget(calls=calls)
    groups = lower(program, target).groups
    written = [[producers[v].op.name for v in group.written] for group in groups]
    assert sorted(written) == [["add"], ["exp"], ["fused_multiply_add"]]
    assert {(4, 2), (12,)} < {v.shape for group in groups for v in group.written}
    check(program, xs, target)


def test_a_call_does_not_read_a_moved_value_that_a_later_kernel_computes() -> None:
    def larger(x: Any, y: Any) -> Any:
        repeated = tk.exp(x).broadcast_to((3, 4))
        return tk.where(repeated < y, repeated, y)

    xs = [
        REFERENCE.new(shape, [0.5, 1.5, 2.5] * (math.prod(shape) // 3), tk.float32)
        for shape in ((3, 1), (3, 4))
    ]
    program = optimised(tk.trace(larger)(*[tk.zeros(x.shape, backend=REFERENCE) for x in xs]), REFERENCE)
    producers = {v: e for e in program.equations for v in e.results}
    calls = {e: [unmoved(x, producers) for x in e.operands] for e in program.equations if e.op.name == "lt"}
    target = ReferenceTarget(calls=calls, costs=Costs(inlined=1))
    computed = [[producers[v].op.name for v in group.values] for group in lower(program, target).groups]
    assert computed == [["exp"], ["lt"], ["expand", "where"]]
    check(program, xs, target)


def test_kernels_that_would_wait_for_each_other_are_not_joined() -> None:
    """One kernel ends before another begins, and reads from a third that begins earlier and ends later."""

    def chosen(x: Any, i: Any, j: Any, flag: Any) -> Any:
        first = x[[0, 1], i]
        return x[[0, 1], j], tk.where(flag, j, first)

    xs = [
        REFERENCE.new((2, 3), [*range(6)], tk.int32),
        *[REFERENCE.new((2,), values, tk.int32) for values in ([0, 2], [1, 1])],
        REFERENCE.new((), [False], tk.bool_),
    ]
    examples = [tk.zeros(x.shape, x.dtype, backend=REFERENCE) for x in xs]
    before = optimised(tk.trace(chosen)(*examples), REFERENCE)
    expected = [*map(bits, before.replay(REFERENCE, xs))]
    program = with_positions(before, REFERENCE)
    for every in range(2, 7):
        for first in range(every):
            called = [e for e in program.equations if can_compute(e) and e.op.name not in INLINE][
                first::every
            ]
            calls = {e: e.operands for e in called}
            target = ReferenceTarget(costs=Costs(recomputed=50, recomputed_elements=50), calls=calls)
            assert [*map(bits, run_lowered(program, REFERENCE, xs, target))] == expected


def test_repeated_elements_are_kept_once() -> None:
    def used_twice(x: Any, y: Any) -> Any:
        repeated = tk.exp(tk.sin(x)).broadcast_to((3, 4))
        return tk.max(tk.abs(repeated - y), axis=0), tk.max(tk.abs(repeated + y), axis=1)

    program = tk.trace(used_twice)(*[tk.zeros(shape, backend=REFERENCE) for shape in ((3, 1), (3, 4))])
    lowered = lower(optimised(program, REFERENCE), ReferenceTarget())
    computed = [lowered.producers[v].op.name for v in lowered.kept if v in lowered.producers]
    assert "exp" in computed
    assert "expand" not in computed


def test_a_value_that_reads_much_is_kept() -> None:
    """A value that two kernels need is computed again, unless it reads more than it would cost to read the value."""

    def used_twice(f: Any, *xs: Any) -> Any:
        y = tk.abs(f(*xs))
        return tk.max(y, axis=0), tk.max(y, axis=1)

    costs = Costs(read=3, recomputed=6)

    def is_kept(f: Any, *shapes: tuple[int, ...]) -> bool:
        xs = [tk.zeros(shape, backend=REFERENCE) for shape in shapes]
        program = optimised(tk.trace(lambda *xs: used_twice(f, *xs))(*xs), REFERENCE)
        lowered = lower(program, ReferenceTarget(costs=costs))
        return "abs" in [lowered.producers[v].op.name for v in lowered.kept if v in lowered.producers]

    matrix, row = (3, 4), (4,)
    assert not is_kept(lambda a, b: a - b, matrix, matrix)
    assert not is_kept(lambda a, b: a - b - a, matrix, matrix)
    assert not is_kept(lambda a, b, c: a - b - c, matrix, row, row)
    assert is_kept(lambda a, b, c: a - b - c, matrix, matrix, matrix)


def test_a_reduction_of_one_element_does_not_join_the_kernel_of_longer_rows() -> None:
    def sums(x: Any) -> Any:
        total = x.sum(1, keepdims=True)
        return total + total.apply(OPS["sum"], (1,))  # optimization removes a sum of one element

    x = REFERENCE.new((2, 3), [float(i) for i in range(6)], tk.float32)
    program = tk.trace(sums)(tk.zeros(x.shape, backend=REFERENCE))
    assert [e.op.name for e in program.equations].count("sum") == 2
    check(program, [x], ReferenceTarget())


def test_kernels_have_at_most_the_operands_that_the_target_allows() -> None:
    def added(*xs: Any) -> Any:
        return list(itertools.accumulate(xs, lambda a, b: a * b + 1.0))

    program = optimised(tk.trace(added)(*[tk.zeros((3,), backend=REQUIRED)] * 9), REQUIRED)
    for operands in (4, 5, 100):
        lowered = lower(program, ReferenceTarget(operands))
        for group in lowered.groups:
            read = {x for v in group.values for x in group.needs[v]} - set(group.values)
            assert len(read) + len(group.written) <= operands
    assert len(lowered.groups) == 1


def test_a_target_with_too_few_operands_is_refused() -> None:
    with pytest.raises(ArgumentError, match="reads and writes 4 values, but the target allows kernels of 3"):
        groups_of(lambda c, a, b: tk.where(c > 0.0, a, b), (3,), (3,), (3,), target=ReferenceTarget(3))


def test_plans_are_the_same_each_time() -> None:
    found = lowered_part(6)
    assert found is not None
    program, _ = found

    def names() -> list[list[int]]:
        number = {v: i for i, v in enumerate(program.variables())}
        return [[number[v] for v in group.values] for group in lower(program, ReferenceTarget(4)).groups]

    assert all([names() == names() for _ in range(3)])


def test_the_walk_is_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        ElementWalk({}, (), ())  # type: ignore[abstract]
