"""The op `convolution`: derivatives, batches, its body against numpy's method, programs, errors.

The conformance kit compares its values with the definition.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from tensorken.ops.convolution import body
from tensorken.programs.passes.pipeline import optimised
from tensorken_core.errors import ArgumentError, DTypeError, ShapeError
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_numpy.backend import Numpy
from tensorken_numpy.compiled.program import planned
from tensorken_numpy.compiled.schedule import FusionGroup

CONVOLUTION = OPS["convolution"]

Problem = tuple[tuple[int, ...], tuple[int, ...], tuple[Any, ...]]


def drawn(seed: int) -> Problem:
    """Shapes and params of a random convolution."""
    rng = random.Random(seed)
    while True:
        rank = rng.choice((0, 1, 2, 2, 2, 3))
        groups, inputs, outputs = rng.choice((1, 1, 2, 3)), rng.choice((1, 2)), rng.choice((1, 2, 4))

        def each(*choices: int, rank: int = rank) -> tuple[int, ...]:
            return tuple(rng.choices(choices, k=rank))

        x = (rng.choice((1, 2, 3)), groups * inputs, *each(1, 2, 3, 4, 5))
        kernel = (groups * outputs, inputs, *each(1, 2, 3, 4))
        padding = tuple(zip(each(-2, -1, 0, 1, 2), each(-2, -1, 0, 1, 2), strict=True))
        params = each(1, 1, 2, 3), padding, each(1, 1, 2, 3), each(1, 1, 2), groups
        try:
            CONVOLUTION.shape(x, kernel, *params)
        except ShapeError:
            continue
        return x, kernel, params


def operands(problem: Problem, lead: tuple[int, ...] = ()) -> list[tk.Tensor]:
    rng = np.random.default_rng(len(repr(problem)))
    return [tk.tensor(rng.normal(size=(*lead, *shape)), "float64") for shape in problem[:2]]


@pytest.mark.parametrize("seed", range(24))
def test_derivatives_of_every_order_stay_in_the_op_and_agree_with_differences(seed: int) -> None:
    problem = drawn(seed)
    x, kernel = operands(problem)

    def convolved(x: Any, kernel: Any) -> Any:
        return x.apply(CONVOLUTION, kernel, *problem[2])

    tk.testing.check_grads(convolved, (x, kernel), order=2)
    gradient = tk.trace(
        tk.grad(lambda x, w: (tk.grad(lambda x, w: (convolved(x, w) ** 2).sum())(x, w) ** 2).sum(), 1)
    )
    ops = {equation.op.name for equation in gradient(x, kernel).equations}
    assert "convolution" in ops
    assert ops.isdisjoint({"fused_multiply_add", "pad", "concatenate", "gather"})


@pytest.mark.parametrize("seed", range(100, 112))
def test_a_batch_is_one_convolution_that_equals_those_of_its_examples(seed: int) -> None:
    problem = drawn(seed)
    plain, batched = operands(problem), operands(problem, (3,))

    def convolved(x: Any, kernel: Any) -> Any:
        return x.apply(CONVOLUTION, kernel, *problem[2])

    for axes in ((0, 0), (0, None), (None, 0)):
        given = [many if axis == 0 else one for one, many, axis in zip(plain, batched, axes, strict=True)]
        mapped = tk.vmap(convolved, in_axes=axes)
        rows = [
            convolved(*[x if axis is None else x[i] for x, axis in zip(given, axes, strict=True)])
            for i in range(3)
        ]
        np.testing.assert_allclose(mapped(*given), tk.stack(rows), rtol=1e-12, atol=1e-12)
        names = [equation.op.name for equation in tk.trace(mapped)(*given).equations]
        assert names.count("convolution") == 1
        assert "expand" not in names


@pytest.mark.parametrize("seed", range(200, 230))
def test_the_body_equals_the_method_of_numpy(seed: int) -> None:
    problem = drawn(seed)
    x, kernel = operands(problem)
    rng = np.random.default_rng(seed)
    for turned in (False, True):
        if turned:  # flipped and transposed views
            arrays = [rng.normal(size=t.shape[::-1]) for t in (x, kernel)]
            x, kernel = [tk.flip(tk.tensor(array, "float64").T) for array in arrays]
        np.testing.assert_allclose(
            body(x, kernel, *problem[2]), x.apply(CONVOLUTION, kernel, *problem[2]), rtol=1e-12, atol=1e-12
        )


def test_integers_wrap_and_float16_is_rounded_once() -> None:
    x = tk.full((1, 1, 3), 2**30, dtype="int32")
    assert tk.convolution(x, tk.ones((1, 1, 3), dtype="int32")).tolist() == [[[-(2**30)]]]
    small = tk.tensor([[[2048.0, 1.0, 1.0]]], "float16")
    assert tk.convolution(small, tk.ones((1, 1, 3), "float16")).tolist() == [[[2050.0]]]


def test_padding_by_name_and_by_numbers() -> None:
    x, kernel = tk.ones((1, 1, 7, 6)), tk.ones((1, 1, 3, 2))
    for strides in (1, 2, (3, 2)):
        down, across = strides if isinstance(strides, tuple) else (strides, strides)
        same = tk.convolution(x, kernel, strides, "same")
        assert same.shape == (1, 1, -(-7 // down), -(-6 // across))
    assert tk.convolution(x, kernel, padding="valid").shape == (1, 1, 5, 5)
    pairs = tk.convolution(x, kernel, padding=((1, 1), (0, 1)))
    np.testing.assert_array_equal(pairs, tk.convolution(x, kernel, padding="same"))
    np.testing.assert_array_equal(
        tk.convolution(x, kernel, padding=1), tk.convolution(x.pad(((0, 0), (0, 0), (1, 1), (1, 1))), kernel)
    )


def test_a_compiled_layer_is_the_op_and_one_group_of_elementwise_ops() -> None:
    def layer(x: Any, kernel: Any, bias: Any) -> Any:
        return tk.relu(tk.convolution(x, kernel, padding="same") + bias.reshape((4, 1, 1)))

    x, kernel, bias = tk.ones((2, 3, 128, 128)), tk.ones((4, 3, 3, 3)), tk.tensor([0.0, 1.0, -40.0, 2.0])
    program = optimised(tk.trace(layer)(x, kernel, bias), Numpy())
    names = [equation.op.name for equation in program.equations]
    assert sorted(names) == ["add", "convolution", "expand", "relu", "reshape"]
    _, units = planned(program, Numpy(), [np.asarray(t) for t in (x, kernel, bias)])
    groups = [unit for unit in units if isinstance(unit, FusionGroup)]
    assert [e.op.name for _, e in groups[0].members if e.op.elementwise] == ["add", "relu"]
    np.testing.assert_allclose(tk.jit(layer)(x, kernel, bias), layer(x, kernel, bias), rtol=1e-6)


def test_programs_with_convolutions_are_saved_and_written_as_python(tmp_path: Any) -> None:
    def layer(x: Any, kernel: Any) -> Any:
        return tk.convolution(x, kernel, 2, ((1, -1),), groups=2)

    x, kernel = tk.arange(24.0).reshape(1, 4, 6), tk.arange(12.0).reshape(2, 2, 3)
    program = tk.trace(layer)(x, kernel)
    program.save(tmp_path / "layer.json")
    names: dict[str, Any] = {}
    exec(program.to_python(), names)
    for found in (tk.Program.load(tmp_path / "layer.json"), names["layer"]):
        assert found(x, kernel).tolist() == layer(x, kernel).tolist()


def test_a_backend_without_the_method_runs_the_body() -> None:
    class Bare(Numpy):
        convolution = getattr(RawTensor, "convolution")  # noqa: B009, it is attached

    bare = Bare()
    assert not bare.has(CONVOLUTION)
    x, kernel = tk.arange(16.0).reshape(1, 1, 4, 4), tk.ones((1, 1, 2, 2))
    on_bare = tk.convolution(x.to(bare), kernel.to(bare))
    assert on_bare.tolist() == tk.convolution(x, kernel).tolist()


X, KERNEL = tk.ones((1, 4, 5, 5)), tk.ones((2, 4, 3, 3))


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: tk.convolution(X, tk.ones((2, 4, 3))), ShapeError, "need shapes .* with equally many sizes"),
        (lambda: tk.convolution(X, tk.ones((2, 3, 3, 3))), ShapeError, "1 groups .* clash: need 4 input channels"),
        (lambda: tk.convolution(X, tk.ones((3, 2, 3, 3)), groups=2), ShapeError, "outputs that the groups divide"),
        (lambda: tk.convolution(X, tk.ones((2, 4, 3, 6))), ShapeError, "a kernel of 6 .* spatial axis 1, which has 5"),
        (lambda: tk.convolution(X, KERNEL, padding=(0, -3)), ShapeError, "which has -1"),
        (lambda: tk.convolution(X, KERNEL, 0), ArgumentError, "strides must be an int from 1, or 2 of them, got 0"),
        (lambda: tk.convolution(X, KERNEL, kernel_dilation=(1, 2, 3)), ArgumentError, "kernel_dilation must be"),
        (lambda: tk.convolution(X, KERNEL, groups=1.5), ArgumentError, "groups must be an int"),
        (lambda: tk.convolution(X, KERNEL, padding="full"), ArgumentError, "'same' or 'valid', got 'full'"),
        (lambda: tk.convolution(X, KERNEL, padding=((1, 2),)), ArgumentError, "padding must be an int, or for each"),
        (lambda: tk.convolution(X > 0, KERNEL > 0), DTypeError, "convolution: not defined for bool"),
    ],
)  # fmt: skip
def test_mistakes_are_named(call: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()
