"""Placement: tensors on several devices, programs that XLA divides among them, and the errors of bad placements."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import tensorken as tk
import tensorken_nn as nn
from core.tests.each import each_of
from tensorken.programs.passes.pipeline import optimised
from tensorken_core.errors import ArgumentError, BackendError, ConcretizationError, ProgramError, ShapeError
from tensorken_jax.backend import Jax
from tools.workspace import ROOT

MESH = Mesh(np.array(jax.devices()), ("devices",))
X = np.linspace(-1.0, 1.0, 32, dtype="float32").reshape(8, 4)


def sharding(*spec: Any) -> NamedSharding:
    """A sharding over the mesh."""
    return NamedSharding(MESH, PartitionSpec(*spec))


ALL, ROWS, COLUMNS = sharding(), sharding("devices"), sharding(None, "devices")


@pytest.fixture(autouse=True)
def jax_backend() -> Iterator[None]:
    """Use the backend within each test."""
    with tk.use_backend("jax"):
        yield


def parts(x: tk.Tensor) -> set[tuple[int, ...]]:
    """The shapes of the parts that the devices hold."""
    return {part.data.shape for part in x.array().addressable_shards}


# ---- the op --------------------------------------------------------------------------------------------------


@each_of("name", ("to", "with_placement", "jit"))
def test_a_tensor_is_placed(name: str) -> None:
    place: dict[str, Callable[[tk.Tensor], tk.Tensor]] = {
        "to": lambda x: x.to("jax", ROWS),
        "with_placement": lambda x: tk.with_placement(x, ROWS),
        "jit": tk.jit(lambda x: tk.with_placement(x, ROWS)),
    }
    x = place[name](tk.tensor(X))
    assert x.placement == ROWS
    assert parts(x) == {(2, 4)}
    np.testing.assert_array_equal(x, X)
    moved = tk.with_placement([x * 2.0], COLUMNS)[0]
    assert parts(moved) == {(8, 1)}
    np.testing.assert_array_equal(moved, 2.0 * X)


def test_a_device_is_a_placement() -> None:
    x = tk.with_placement(tk.tensor(X), jax.devices()[2])
    assert x.array().devices() == {jax.devices()[2]}
    assert (x + 1.0).array().devices() == {jax.devices()[2]}


def test_none_leaves_a_tensor_as_it_is_on_every_backend() -> None:
    for backend in ("numpy", "reference", "jax"):
        x = tk.tensor(X, backend=backend)
        assert tk.with_placement(x, None) is x


@each_of("compiled", (False, True))
def test_derivatives_and_batches_are_placed_too(compiled: bool) -> None:
    def f(x: tk.Tensor) -> tk.Tensor:
        return (tk.with_placement(x, ROWS) ** 3).sum()

    def transform(f: Any) -> Any:
        return tk.jit(f) if compiled else f

    gradient = transform(tk.grad(f))(tk.tensor(X))
    assert parts(gradient) == {(2, 4)}
    np.testing.assert_allclose(gradient, 3.0 * X**2, rtol=1e-6)
    _, tangent = transform(lambda x: tk.jvp(lambda x: tk.with_placement(x, ROWS), (x,), (x + 1.0,)))(
        tk.tensor(X)
    )
    assert parts(tangent) == {(2, 4)}
    twice = transform(tk.vmap(tk.vmap(lambda row: tk.with_placement(row * 2.0, ROWS))))
    examples = np.arange(24.0, dtype="float32").reshape(2, 3, 4)
    batch = twice(tk.tensor(examples))
    assert parts(batch) == {(2, 3, 1)}
    np.testing.assert_array_equal(batch, 2.0 * examples)


def test_programs_show_and_keep_placements() -> None:
    def f(x: tk.Tensor) -> tk.Tensor:
        add = tk.jit(lambda x, y: x + tk.with_placement(y, ROWS))
        return add(tk.with_placement(tk.with_placement(x, ROWS), COLUMNS), tk.ones((8, 4)))

    program = tk.trace(f)(tk.tensor(X))
    backend = Jax()
    optimized = optimised(program, backend)
    for text in (str(program), str(optimized)):
        assert text.count("with_placement(") == text.count("placement=NamedSharding(") == 3
    lowered = jax.jit(lambda x: tuple(optimized.replay(backend, [x]))).lower(X)
    assert lowered.as_text().count("sdy.sharding_constraint") == 3
    with pytest.raises(ProgramError, match=r"^save: f: a value of type NamedSharding cannot be saved"):
        program.save("never_written.json")
    with pytest.raises(
        ProgramError, match=r"^to_python: a param of type NamedSharding has no form in Python"
    ):
        program.to_python()


# ---- bad placements ------------------------------------------------------------------------------------------


@each_of("compiled", (False, True))
def test_bad_placements_are_errors(compiled: bool) -> None:
    def place(shape: tuple[int, ...], placement: Any) -> None:
        def f(x: tk.Tensor) -> tk.Tensor:
            return tk.with_placement(x, placement)

        (tk.jit(f) if compiled else f)(tk.ones(shape))

    with pytest.raises(
        ShapeError,
        match=r"the 4 devices along 'devices' of the mesh do not divide axis 0 of shape \(30, 64\)",
    ):
        place((30, 64), ROWS)
    with pytest.raises(ShapeError, match=r"is for at least 2 axes, and the tensor has shape \(8,\)"):
        place((8,), COLUMNS)
    with pytest.raises(ArgumentError, match=r"got P\('devices',\); make it a NamedSharding with a mesh"):
        place((8,), PartitionSpec("devices"))
    with pytest.raises(
        ArgumentError, match=r"^with_placement: need a sharding or a device of JAX, got 'rows'"
    ):
        place((8,), "rows")
    with pytest.raises(ArgumentError, match=r"^with_placement: need an object of the backend's library"):
        place((8,), [0, 1])


def test_backends_without_placements_say_so() -> None:
    x = tk.tensor(X, backend="numpy")
    for place in (
        lambda x: tk.with_placement(x, ROWS),
        tk.jit(lambda x: tk.with_placement(x, ROWS)),
        lambda x: x.to("numpy", ROWS),
    ):
        with pytest.raises(BackendError, match=r"the backend numpy has no placements; pass None"):
            place(x)
    assert x.placement is None
    program = tk.trace(lambda x: tk.with_placement(x, ROWS))(tk.tensor(X))
    with (
        tk.use_backend("numpy"),
        pytest.raises(BackendError, match=r"the backend Numpy\(\) has no placements"),
    ):
        tk.jit(program)(x)


def test_a_traced_tensor_has_no_placement_yet() -> None:
    with pytest.raises(ConcretizationError, match=r"^placement: this tensor is inside trace"):
        tk.jit(lambda x: [x.placement, x][1])(tk.tensor(X))


def test_operands_on_different_devices_are_an_error() -> None:
    x, y = (tk.with_placement(tk.tensor(X), device) for device in jax.devices()[:2])
    with pytest.raises(BackendError, match=r"add: operands are on different devices, \[0\] and \[1\]"):
        tk.jit(tk.add)(x, y)


# ---- training ------------------------------------------------------------------------------------------------


def test_a_perceptron_has_the_losses_of_numpy(capsys: Any) -> None:
    spec = importlib.util.spec_from_file_location("sharding", ROOT / "examples" / "sharding.py")
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.main()
    drawn = capsys.readouterr().out
    page = (ROOT / "docs" / "backends" / "jax.md").read_text(encoding="utf-8")
    assert drawn in page.replace("\n```", "\n")
    _, expected = example.losses("numpy", (None, None), None, None)
    assert expected[-1] < 0.5 * expected[0]
    for places in example.PLACEMENTS.values():
        weights, found = example.losses("jax", **places)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
        assert [w.placement.is_fully_replicated for w in weights] == [w == ALL for w in places["weights"]]


VOCABULARY, CONTEXT, BATCH = 27, 16, 8


def model_placement(name: str) -> NamedSharding:
    """As in Megatron: the first layer of each branch is divided by outputs, the second by inputs."""
    if name.endswith(("up.weight", "inputs.weight")):
        return ROWS
    return COLUMNS if name.endswith(("down.weight", "output.weight")) else ALL


def gpt_losses(backend: str, parameters: Callable[[str], Any], data: Any, hidden: Any) -> list[float]:
    """The losses of five steps of AdamW."""
    text = np.random.default_rng(7).integers(0, VOCABULARY, (2, BATCH, CONTEXT)).astype("int32")
    with tk.use_backend(backend):
        model = nn.GPT(VOCABULARY, CONTEXT, 2, 4, 32, bias=False, key=tk.random.key(0))
        placed = [x.to(backend, parameters(name)) for name, x in nn.named_parameters(model).items()]
        model = tk.tree.unflatten(tk.tree.structure(model), placed)
        optimizer = nn.AdamW(1e-3)

        @tk.jit
        def step(model: Any, state: Any, tokens: tk.Tensor, labels: tk.Tensor) -> Any:
            def loss(model: Any) -> tk.Tensor:
                return nn.cross_entropy(tk.with_placement(model(tokens), hidden), labels)

            value, gradient = tk.value_and_grad(loss)(model)
            return (*optimizer.update(model, gradient, state), value)

        tokens, labels = (tk.tensor(part).to(backend, data) for part in text)
        state, losses = optimizer.init(model), []
        for _ in range(5):
            model, state, value = step(model, state, tokens, labels)
            losses.append(value.item())
        if backend == "jax":
            for name, x in nn.named_parameters(model).items():
                assert parts(x) == {parameters(name).shard_shape(x.shape)}
        return losses


@each_of("name", ("data", "tensor"))
def test_a_transformer_has_the_losses_of_numpy(name: str) -> None:
    expected = gpt_losses("numpy", lambda name: None, None, None)
    assert abs(expected[0] - math.log(VOCABULARY)) < 0.1
    assert expected[-1] < expected[0]
    if name == "data":
        found = gpt_losses("jax", lambda name: ALL, ROWS, ROWS)
    else:
        found = gpt_losses("jax", model_placement, ALL, ALL)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


# ---- callbacks ---------------------------------------------------------------------------------------------


def test_callbacks_get_the_values_of_all_devices_once(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[Any] = []

    def step(x: tk.Tensor) -> tk.Tensor:
        y = x + 1
        tk.io_callback(lambda v: seen.append(v.tolist()), None, y)
        tk.debug.print("sum {}", y.sum())
        return tk.io_callback(lambda v: 2 * v, y, y) * y + tk.pure_callback(lambda v: v - 1, y, y)

    def loop(x: tk.Tensor) -> tk.Tensor:
        return tk.fori_loop(0, 2, lambda i, x: step(x), x)

    values = np.arange(32.0, dtype="float32").reshape(8, 4)
    for f, steps in ((step, 1), (loop, 2)):
        expected, wanted = values, []
        for _ in range(steps):
            y = expected + 1
            wanted.append(y)
            expected = 2 * y * y + y - 1
        for run in (f, tk.jit(f)):
            seen.clear()
            assert run(tk.tensor(values).to("jax", ROWS)).tolist() == expected.tolist()
            assert seen == [y.tolist() for y in wanted]
            assert capsys.readouterr().out.splitlines() == [f"sum {y.sum()}" for y in wanted]


@pytest.mark.parametrize("callback", [tk.pure_callback, tk.io_callback])
@pytest.mark.parametrize("jitted", [False, True])
def test_results_of_callbacks_meet_tensors_on_several_devices(callback: Any, jitted: bool) -> None:
    def f(x: tk.Tensor) -> Any:
        return callback(lambda v: 2 * v, x, x)

    x = tk.tensor(X).to("jax", ROWS)
    y = (tk.jit(f) if jitted else f)(x)
    assert (x * y).tolist() == (X * (2 * X)).tolist()
    assert tk.jit(lambda x, y: x + y)(x, y).tolist() == (X + 2 * X).tolist()
