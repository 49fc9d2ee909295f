"""Named axes whose examples lie on four devices: XLA turns collectives into communication between these."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import tensorken as tk
import tensorken_nn as nn
from tensorken.programs.passes.pipeline import optimised
from tensorken_conformance.case import Case
from tensorken_conformance.laws.collectives import LENGTH, MODES, PROGRAMS, SHARED_CONDITION, agree
from tensorken_jax.backend import Jax

MESH = Mesh(np.array(jax.devices()), ("devices",))
ALL, ROWS = NamedSharding(MESH, PartitionSpec()), NamedSharding(MESH, PartitionSpec("devices"))
WORKERS = 4


@pytest.fixture(autouse=True)
def jax_backend() -> Iterator[None]:
    """Use the backend within each test."""
    with tk.use_backend("jax"):
        yield


FEW = ("psum", "batch norm", "all_to_all", "scan")


@pytest.mark.parametrize("mode", ["jit", "jit-of-grad"])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=[] if n in FEW else pytest.mark.nightly)
        for n in PROGRAMS
        if n != SHARED_CONDITION
    ],
)
def test_four_devices_compute_what_one_does(name: str, mode: str) -> None:
    of_example, of_all = PROGRAMS[name]
    values = np.linspace(-1.3, 1.6, WORKERS * LENGTH).reshape(WORKERS, LENGTH)
    x = tk.tensor(values).to("jax", ROWS)
    if mode == "jit":
        got = MODES["jit"][0](of_example, x)
    else:
        got = tk.jit(lambda x: MODES["grad-inside"][0](of_example, x))(x)
    with tk.use_backend("numpy"):
        wanted = MODES["jit" if mode == "jit" else "grad-inside"][1](of_all, tk.tensor(values))
    agree(
        Case("programs.collectives", name, "float64", detail=mode),
        np.asarray(got),
        np.asarray(wanted),
        values,
    )


VOCABULARY, CONTEXT, BATCH = 27, 16, 2


def gpt_step(model: Any, state: Any, tokens: Any, labels: Any) -> Any:
    """A step of AdamW, written for one worker, with its own examples."""
    value, gradient = tk.value_and_grad(lambda model: nn.cross_entropy(model(tokens), labels))(model)
    value, gradient = tk.pmean((value, gradient), "workers")
    return (*nn.AdamW(1e-3).update(model, gradient, state), value)


def gpt(backend: str, everywhere: Any, rows: Any) -> tuple[list[float], str]:
    """The losses of five steps, and the compiled step on the backend jax."""
    text = np.random.default_rng(7).integers(0, VOCABULARY, (2, WORKERS, BATCH, CONTEXT)).astype("int32")
    with tk.use_backend(backend):
        model = nn.GPT(VOCABULARY, CONTEXT, 1, 2, 16, bias=False, key=tk.random.key(0))
        state = nn.AdamW(1e-3).init(model)
        model, state = tk.tree.map(lambda x: tk.asarray(x).to(backend, everywhere), (model, state))
        tokens, labels = (tk.tensor(part).to(backend, rows) for part in text)
        step = tk.vmap(gpt_step, (None, None, 0, 0), None, axis_name="workers")
        compiled = tk.jit(step)
        arguments, losses = (model, state, tokens, labels), []
        for _ in range(5):
            model, state, value = compiled(model, state, tokens, labels)
            losses.append(value.item())
        return losses, hlo(step, arguments) if backend == "jax" else ""


def hlo(function: Any, arguments: Any) -> str:
    """The text of the computation that XLA has compiled for these arguments."""
    backend = Jax()
    program = optimised(tk.trace(function)(*arguments), backend)
    leaves = [x.array() for x in tk.tree.leaves(arguments)]
    with jax.enable_x64(True):
        lowered = jax.jit(lambda *xs: tuple(program.replay(backend, list(xs)))).lower(*leaves)
    text: str = lowered.compile().as_text()
    return text


def communication(text: str) -> list[str]:
    """The communication between devices in a compiled computation."""
    return re.findall(r"= .* (all-reduce|all-gather|all-to-all|collective-permute)\(", text)


def test_a_transformer_has_the_losses_of_numpy() -> None:
    """All gradients are reduced together, both those of the table that the first and the last layer share."""
    expected, _ = gpt("numpy", None, None)
    found, text = gpt("jax", ALL, ROWS)
    assert expected[-1] < expected[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    assert communication(text) == ["all-reduce"]


def test_a_perceptron_needs_one_all_reduce_a_step() -> None:
    def step(weights: Any, x: Any, y: Any) -> Any:
        def loss(weights: Any) -> Any:
            return ((tk.tanh(x @ weights[0]) @ weights[1] - y) ** 2).sum()

        value, gradient = tk.psum(tk.value_and_grad(loss)(weights), "workers")
        return tk.tree.map(lambda w, g: w - 0.01 * g, weights, gradient), value

    random = np.random.default_rng(0)
    shapes = [(5, 7), (7,), (WORKERS, 16, 5), (WORKERS, 16)]
    arrays = [random.normal(size=shape).astype("float32") for shape in shapes]
    places = [ALL, ALL, ROWS, ROWS]
    a, b, x, y = [tk.tensor(array).to("jax", place) for array, place in zip(arrays, places, strict=True)]
    steps = tk.vmap(step, (None, 0, 0), None, axis_name="workers")
    assert communication(hlo(steps, ((a, b), x, y))) == ["all-reduce"]
    with tk.use_backend("numpy"):
        a, b, x, y = [tk.tensor(array) for array in arrays]
        expected = steps((a, b), x, y)[1].item()
    np.testing.assert_allclose(tk.jit(steps)((a, b), x, y)[1].item(), expected, rtol=1e-6)
