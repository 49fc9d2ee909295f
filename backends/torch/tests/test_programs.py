"""Programs as graphs: losses of training steps are numpy's, and torch's fused functions are found."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tensorken as tk
from core.tests.each import each_of
from tensorken_core.errors import BackendError
from tensorken_nn import Adam, AdamW

GENERATOR = np.random.default_rng(0)


def normal(*shape: int, scale: float = 1.0) -> Any:
    """Random numbers in float32."""
    return (GENERATOR.normal(size=shape) * scale).astype(np.float32)


# ---- networks ------------------------------------------------------------------------------------------------


def cross_entropy(logits: Any, labels: Any) -> Any:
    """The mean cross-entropy."""
    return -tk.take_along_axis(tk.log_softmax(logits, -1), labels[:, None], 1).mean()


def mlp_loss(p: Any, x: Any, labels: Any) -> Any:
    """The loss of a perceptron with two layers."""
    return cross_entropy(tk.relu(x @ p["w0"] + p["b0"]) @ p["w1"] + p["b1"], labels)


def layer_norm(x: Any, weight: Any) -> Any:
    """Layer normalisation."""
    x = x - x.mean(-1, keepdims=True)
    return x / tk.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weight


def gelu(x: Any) -> Any:
    """The approximation by tanh."""
    return 0.5 * x * (1.0 + tk.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def gpt_loss(p: Any, tokens: Any, labels: Any) -> Any:
    """The loss of a transformer with one layer, two heads and tied embeddings."""
    count, length = tokens.shape
    width = p["tokens"].shape[1]
    x = p["tokens"][tokens] + p["places"]
    h = layer_norm(x, p["norm"]) @ p["qkv"]
    q, k, v = (
        h[:, :, i * width : (i + 1) * width].reshape((count, length, 2, width // 2)).transpose((0, 2, 1, 3))
        for i in range(3)
    )
    mask = tk.tensor(np.tril(np.ones((length, length), bool)))
    scores = tk.where(mask, q @ k.transpose((0, 1, 3, 2)) * (width // 2) ** -0.5, -1e9)
    mixed = (tk.softmax(scores, -1) @ v).transpose((0, 2, 1, 3)).reshape((count, length, width))
    x = x + mixed @ p["out"]
    x = x + gelu(layer_norm(x, p["norm"]) @ p["up"]) @ p["down"]
    return cross_entropy((x @ p["tokens"].T).reshape((count * length, -1)), labels)


MLP: dict[str, Any] = {
    "w0": normal(64, 600, scale=0.1),
    "b0": np.zeros(600, np.float32),
    "w1": normal(600, 10, scale=0.1),
    "b1": np.zeros(10, np.float32),
}
GPT: dict[str, Any] = {
    "tokens": normal(11, 32, scale=0.1),
    "places": normal(16, 32, scale=0.1),
    "norm": np.ones(32, np.float32),
    "qkv": normal(32, 96, scale=0.1),
    "out": normal(32, 32, scale=0.1),
    "up": normal(32, 128, scale=0.1),
    "down": normal(128, 32, scale=0.1),
}
CASES: dict[str, Any] = {
    "mlp": (mlp_loss, MLP, (normal(128, 64), GENERATOR.integers(10, size=128, dtype=np.int32))),
    "gpt": (
        gpt_loss,
        GPT,
        (
            GENERATOR.integers(11, size=(48, 16), dtype=np.int32),
            GENERATOR.integers(11, size=768, dtype=np.int32),
        ),
    ),
}


def losses(name: str, optimizer: Any, donates: bool) -> list[float]:
    """The losses of some steps of training, compiled."""
    loss, parameters, data = CASES[name]

    def step(parameters: Any, state: Any, *data: Any) -> Any:
        value, gradients = tk.value_and_grad(loss)(parameters, *data)
        return *optimizer.update(parameters, gradients, state), value

    jitted = tk.jit(step, donate_argnums=(0, 1) if donates else ())
    parameters, tensors = tk.tree.map(tk.tensor, parameters), [tk.tensor(x) for x in data]
    state, found = optimizer.init(parameters), []
    for _ in range(5):
        parameters, state, value = jitted(parameters, state, *tensors)
        found.append(value.item())
    return found


@each_of("name", CASES)
@pytest.mark.parametrize("donates", [False, True])
@pytest.mark.parametrize("optimizer", [Adam(1e-3), AdamW(1e-3, weight_decay=0.1)], ids=["adam", "adamw"])
def test_losses_are_those_of_numpy(name: str, optimizer: Any, donates: bool) -> None:
    with tk.use_backend("numpy"):
        expected = losses(name, optimizer, donates)
    with tk.use_backend("torch"):
        got = losses(name, optimizer, donates)
    assert expected[-1] < expected[0]
    np.testing.assert_allclose(got, expected, rtol=1e-6)


# ---- fused functions -----------------------------------------------------------------------------------------

X, T = normal(600, 200), normal(600, 200)

ACTIVATIONS = {
    "tanh_gelu": gelu,
    "gelu": lambda x: 0.5 * x * (1.0 + tk.erf(x * 0.7071067811865476)),
    "silu": lambda x: x * tk.sigmoid(x),
}


def text_and_results(f: Any, *arguments: Any) -> tuple[str, list[Any]]:
    """The graph of a function on torch, and its results."""
    with tk.use_backend("torch"):
        tensors = [tk.tensor(x) for x in arguments]
        jitted = tk.jit(f)
        ys = jitted(*tensors)
        return jitted.lower(*tensors).as_text("torch"), [np.asarray(y) for y in tk.tree.leaves(ys)]


def results_of_numpy(f: Any, *arguments: Any) -> list[Any]:
    """The results on numpy."""
    with tk.use_backend("numpy"):
        return [np.asarray(y) for y in tk.tree.leaves(tk.jit(f)(*[tk.tensor(x) for x in arguments]))]


@each_of("name", ACTIVATIONS)
def test_activations_are_found_by_their_values(name: str) -> None:
    f = ACTIVATIONS[name]

    def backward(x: Any, t: Any) -> Any:
        return tk.vjp(f, x)[1](t)

    for function, arguments, target in ((f, (X,), name), (backward, (X, T), f"{name}_backward")):
        text, got = text_and_results(function, *arguments)
        assert f"activations_{target}(" in text
        for y, expected in zip(got, results_of_numpy(function, *arguments), strict=True):
            np.testing.assert_allclose(y, expected, rtol=1e-5, atol=2e-6)


@each_of("f", (lambda x: 0.5 * x * (1.0 + tk.tanh(x)), lambda x: gelu(x) * 1.0001, lambda x: gelu(x) + x))
def test_other_functions_are_no_activations(f: Any) -> None:
    text, (got,) = text_and_results(f, X)
    assert "activations" not in text
    np.testing.assert_allclose(got, results_of_numpy(f, X)[0], rtol=1e-5, atol=1e-6)


def residual(x: Any, w: Any) -> Any:
    """A block with a normalisation, whose operand is overwritten if nothing keeps it."""
    return x + tk.tanh(layer_norm(x * 2.0, w)) * 0.5


def test_layer_norms_and_their_derivatives_are_found() -> None:
    def step(x: Any, w: Any, t: Any) -> Any:
        y, pullback = tk.vjp(lambda x, w: residual(residual(x, w), w), x, w)
        return y, pullback(t)

    for shape in ((3, 5, 100), (700, 200)):
        arguments = normal(*shape), normal(shape[-1]), normal(*shape)
        text, got = text_and_results(step, *arguments)
        assert text.count("native_layer_norm(") == text.count("layer_norm_gradient(") == 2
        for y, expected in zip(got, results_of_numpy(step, *arguments), strict=True):
            np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


NEAR_LAYER_NORM = {
    "another axis": lambda x: (x - x.mean(0)) / tk.sqrt(((x - x.mean(0)) ** 2).mean(0) + 1e-5),
    "another mean": lambda x: (
        (x - x.mean(-1, keepdims=True)) / tk.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
    ),
    "other divisor": lambda x: layer_norm(x * 1.0, tk.sqrt(x[0] * x[0] + 1e-5)) * tk.sqrt(x * x + 1.0),
}


@each_of("name", NEAR_LAYER_NORM)
def test_values_near_a_layer_norm_are_right(name: str) -> None:
    f = NEAR_LAYER_NORM[name]
    _, (got, gradient) = text_and_results(lambda x: (f(x), tk.grad(lambda x: (f(x) * T).sum())(x)), X)
    expected = results_of_numpy(lambda x: (f(x), tk.grad(lambda x: (f(x) * T).sum())(x)), X)
    for y, z in zip((got, gradient), expected, strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-4, atol=1e-5 * np.abs(z).max())


def adam_step(p: Any, m: Any, s: Any, g: Any, step: Any) -> Any:
    """A step of Adam, written out."""
    m, s = 0.9 * m + 0.1 * g, 0.99 * s + 0.01 * (g * g)
    return p - 1e-2 * (m / (1.0 - 0.9**step)) / (tk.sqrt(s / (1.0 - 0.99**step)) + 1e-8), m, s


NEAR_ADAM = {
    "other weights": lambda p, m, s, g: (
        p - 0.1 * (0.9 * m + 0.2 * g) / (tk.sqrt(0.99 * s + 0.01 * g * g) + 1e-8)
    ),
    "another gradient": lambda p, m, s, g: (
        p - (0.9 * m + 0.1 * p) / (tk.sqrt(0.99 * s + 0.01 * g * g) + 1e-8)
    ),
    "sum": lambda p, m, s, g: p + (0.9 * m + 0.1 * g) / (tk.sqrt(0.99 * s + 0.01 * g * g) + 1e-8),
}


def test_a_step_of_adam_is_found() -> None:
    arguments = X, T, T * T, X * T, np.float32(3.0)
    text, got = text_and_results(adam_step, *arguments)
    assert text.count("adam_adam(") == 1
    for y, expected in zip(got, results_of_numpy(adam_step, *arguments), strict=True):
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


@each_of("name", NEAR_ADAM)
def test_other_updates_are_not_taken_for_adam(name: str) -> None:
    f = NEAR_ADAM[name]
    text, (got,) = text_and_results(f, X, T, T * T, X * T)
    assert "adam" not in text
    np.testing.assert_allclose(got, results_of_numpy(f, X, T, T * T, X * T)[0], rtol=1e-4, atol=1e-5)


# ---- torch.compile -----------------------------------------------------------------------------------------


@pytest.mark.nightly  # the first compilation of a process takes half a minute
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch itself
@pytest.mark.skipif(shutil.which("c++") is None, reason="torch.compile needs a C++ compiler")
def test_compiled_graphs_have_the_losses_of_numpy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TENSORKEN_TORCH_COMPILE", "default")
    modes: list[str] = []
    original = torch.compile

    def noted(module: Any, mode: str, dynamic: bool) -> Any:
        modes.append(mode)
        return original(module, mode=mode, dynamic=dynamic)

    monkeypatch.setattr(torch, "compile", noted)
    w, x = normal(3, 2), normal(4, 3)
    losses = {}
    for backend in ("numpy", "torch"):
        with tk.use_backend(backend):
            step = tk.jit(lambda w, x: tk.value_and_grad(lambda w: (tk.tanh(x @ w) ** 2).mean())(w))
            loss, gradient = step(tk.asarray(w), tk.asarray(x))
            losses[backend] = np.append(np.asarray(gradient), loss.item())
    assert modes == ["default"]
    np.testing.assert_allclose(losses["torch"], losses["numpy"], rtol=1e-5, atol=1e-6)


def test_unknown_modes_of_torch_compile_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORKEN_TORCH_COMPILE", "fastest")
    with (
        tk.use_backend("torch"),
        pytest.raises(BackendError, match="COMPILE='fastest': expected one of default, "),
    ):
        tk.jit(lambda x: tk.tanh(x) * 2)(tk.ones(3))
