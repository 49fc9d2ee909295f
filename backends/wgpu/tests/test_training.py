"""Training: a step is few kernels and one submission, losses equal numpy's, and memory does not grow."""

from __future__ import annotations

import gc
import itertools
import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from tensorken_cli.command import main
from tensorken_core import tree
from tensorken_nn.jobs.digits import DARKEST, LABEL_SMOOTHING, read
from tensorken_nn.layers import mlp
from tensorken_nn.losses import cross_entropy
from tensorken_nn.metrics import correct
from tensorken_nn.optimizers import Adam, AdamState
from tensorken_wgpu.backend import Wgpu
from tensorken_wgpu.device.adapters import adapter_of
from tensorken_wgpu.device.device import Device

STEPS = 50
WARM = 10
"""Steps after which all programs are there, and all kernels have been written for their shapes."""


@dataclass(frozen=True)
class Training:
    """A model and its training data.

    Attributes:
        step: from a state and a batch to the next state and figures, of which the loss is the first.
        state: the initial state, as numpy arrays.
        batches: used in turn.
    """

    step: Callable[..., tuple[Any, ...]]
    state: Any
    batches: list[Any]

    def run(self, where: Any, steps: int = STEPS) -> Iterator[Any]:
        """Train on a backend; yields the loss of each step before the next one."""
        state, *batches = tree.map(lambda x: tk.tensor(x, backend=where), (self.state, *self.batches))
        for i in range(steps):
            state, loss, *_ = self.step(state, *batches[i % len(batches)])
            yield loss


# ---- models ------------------------------------------------------------------------------------------------


def perceptron(sizes: tuple[int, ...], batches: list[Any], eager: bool = False) -> Training:
    """A perceptron that classifies, with Adam; a compiled step is always the hundredth."""
    adam = Adam(1e-3)
    parameters = tree.map(np.asarray, mlp(sizes, key=tk.random.key(0, backend="numpy")))
    zeros = tree.map(np.zeros_like, parameters)

    def objective(model: Any, x: tk.Tensor, y: tk.Tensor) -> Any:
        logits = model(x)
        return cross_entropy(logits, y, LABEL_SMOOTHING), logits

    def step(state: Any, x: tk.Tensor, y: tk.Tensor, count: int = 100) -> Any:
        parameters, mean, square = state
        (loss, logits), gradients = tk.value_and_grad(objective, has_aux=True)(parameters, x, y)
        parameters, after = adam.update(parameters, gradients, AdamState(count, mean, square))
        return (parameters, after.mean, after.square), loss, correct(logits, y)

    counts = itertools.count()
    chosen = (lambda *given: step(*given, next(counts))) if eager else tk.jit(step)
    return Training(chosen, (parameters, zeros, zeros), batches)


def digits(eager: bool = False) -> Training:
    """A perceptron that classifies digits."""
    images = read()[: 32 * STEPS]
    x = np.array([pixels for pixels, _ in images], np.float32) / DARKEST
    y = np.array([digit for _, digit in images], np.int32)
    batches = [(x[i : i + 32], y[i : i + 32]) for i in range(0, len(images), 32)]
    return perceptron((64, 128, 64, 10), batches, eager)


LAYERS, WIDTH, HEADS, CONTEXT, VOCABULARY, ROWS = 2, 32, 4, 16, 27, 8


def transformer() -> Training:
    """A language model of two blocks that memorises a text, with gradient descent."""
    rng = np.random.default_rng(0)
    shapes = {
        "qkv": (WIDTH, 3 * WIDTH),
        "out": (WIDTH, WIDTH),
        "up": (WIDTH, 4 * WIDTH),
        "down": (4 * WIDTH, WIDTH),
    }

    def drawn(*shape: int) -> Any:
        return (0.1 * rng.normal(size=shape)).astype(np.float32)

    def filled(value: float, size: int = WIDTH) -> Any:
        return np.full(size, value, np.float32)

    def norm() -> Any:
        return {"scale": filled(1.0), "shift": filled(0.0)}

    def block() -> Any:
        biases = {"up bias": filled(0.0, 4 * WIDTH), "down bias": filled(0.0)}
        return (
            {name: drawn(*shape) for name, shape in shapes.items()} | biases | {"one": norm(), "two": norm()}
        )

    parameters = {
        "tokens": drawn(VOCABULARY, WIDTH),
        "positions": drawn(CONTEXT, WIDTH),
        "blocks": [block() for _ in range(LAYERS)],
        "norm": norm(),
        "head": drawn(WIDTH, VOCABULARY),
    }
    text = rng.integers(0, VOCABULARY, (ROWS, CONTEXT + 1)).astype(np.int32)
    return Training(tk.jit(descended), parameters, [(text[:, :-1], text[:, 1:])])


def descended(p: Any, tokens: tk.Tensor, labels: tk.Tensor) -> Any:
    """A step of gradient descent."""
    loss, gradients = tk.value_and_grad(lambda p: cross_entropy(logits_of(p, tokens), labels))(p)
    return tree.map(lambda x, g: x - 0.1 * g, p, gradients), loss


def logits_of(p: Any, tokens: tk.Tensor) -> tk.Tensor:
    x = p["tokens"][tokens] + p["positions"]
    for block in p["blocks"]:
        x = x + attention(block, normalised(block["one"], x))
        hidden = gelu(normalised(block["two"], x) @ block["up"] + block["up bias"])
        x = x + hidden @ block["down"] + block["down bias"]
    return normalised(p["norm"], x) @ p["head"]


def normalised(p: Any, x: tk.Tensor) -> tk.Tensor:
    x = x - x.mean(-1, keepdims=True)
    return x / tk.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * p["scale"] + p["shift"]


def gelu(x: tk.Tensor) -> tk.Tensor:
    """The approximation by tanh (Hendrycks and Gimpel, Gaussian Error Linear Units, 2016)."""
    return 0.5 * x * (1.0 + tk.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)))


def attention(p: Any, x: tk.Tensor) -> tk.Tensor:
    """Causal attention: each position attends to itself and earlier ones."""
    heads = (x @ p["qkv"]).reshape((ROWS, CONTEXT, 3, HEADS, WIDTH // HEADS)).permute((2, 0, 3, 1, 4))
    q, k, v = heads
    scores = q @ k.permute((0, 1, 3, 2)) / math.sqrt(WIDTH // HEADS)
    seen = tk.tril(scores.ones_like()) > 0.0
    mixed = tk.softmax(tk.where(seen, scores, -math.inf)) @ v
    return mixed.permute((0, 2, 1, 3)).reshape((ROWS, CONTEXT, WIDTH)) @ p["out"]


# ---- steps -------------------------------------------------------------------------------------------------

TRAININGS: Mapping[str, tuple[Callable[[], Training], int]] = {
    "digits": (digits, 16),
    "transformer": (transformer, 80),
}
"""By name what is trained, and how many kernels a step may be."""


@dataclass(frozen=True)
class Observed:
    """The course of a training.

    Attributes:
        most: the most kernels of a step.
        losses: of each step.
        right: numpy's losses.
        kernels: how many each step ran.
        submissions: how many each step made, with the read of its loss.
    """

    most: int
    losses: list[float]
    expected: list[float]
    kernels: list[int]
    submissions: list[int]


@pytest.fixture(scope="module", params=TRAININGS)
def observed(lazy: Any, device: Any, request: pytest.FixtureRequest) -> Observed:
    make, most = TRAININGS[request.param]
    losses, seen = [], [device.statistics]
    for loss in make().run(lazy):
        losses.append(loss.item())
        seen.append(device.statistics)
    steps = list(itertools.pairwise(seen))[WARM:]
    kernels, submissions = (
        [after[what] - before[what] for before, after in steps] for what in ("kernels", "submissions")
    )
    return Observed(most, losses, [loss.item() for loss in make().run("numpy")], kernels, submissions)


def test_a_step_is_few_kernels_and_one_submission(observed: Observed) -> None:
    assert max(observed.kernels) <= observed.most
    assert len(set(observed.kernels)) == 1
    assert set(observed.submissions) == {1}


def test_losses_equal_numpys(observed: Observed) -> None:
    assert observed.expected[-1] < 0.8 * observed.expected[0]
    np.testing.assert_allclose(observed.losses, observed.expected, rtol=0, atol=1e-4)


def test_eager_losses_equal_numpys(lazy: Any) -> None:
    """No loss is read before the end, so ops are pending and run many at a time."""
    found, expected = (list(digits(eager=True).run(where)) for where in (lazy, "numpy"))
    np.testing.assert_allclose([x.item() for x in found], [x.item() for x in expected], rtol=0, atol=1e-4)


@pytest.mark.nightly
def test_the_command_reaches_the_accuracy_of_numpy(device: Any, tmp_path: Path) -> None:
    figures = []
    for backend in ("numpy", "wgpu"):
        folder = tmp_path / backend
        options = ["--epochs=3", "--limit=400", "--learning-rate=0.02", "--quiet", f"--out={folder}"]
        assert main(["train", "digits", "--backend", backend, *options]) == 0
        lines = (folder / "metrics.jsonl").read_text(encoding="ascii").splitlines()
        figures.append([json.loads(line) for line in lines])
    for numpys, ours in zip(*figures, strict=True):
        assert (
            abs(ours["test_accuracy"] - numpys["test_accuracy"]) < 1.5 / 80
        )  # two logits may be nearly equal
        assert ours["loss"] == pytest.approx(numpys["loss"], abs=1e-4)
    assert figures[1][-1]["test_accuracy"] == figures[0][-1]["test_accuracy"] > 0.5


@pytest.mark.nightly
def test_a_gpt_learns_as_on_numpy(device: Any, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("to be, or not to be: that is the question. " * 10, encoding="utf-8")
    sizes = "--layers=1 --heads=2 --width=16 --context=8 --batch-size=4 --sample=5 --evaluate-batches=2"
    steps = "--steps=10 --evaluate-every=5 --quiet"
    figures = []
    for backend in ("numpy", "wgpu"):
        folder = tmp_path / backend
        options = [*sizes.split(), *steps.split(), f"--text={tmp_path / 'text.txt'}", f"--out={folder}"]
        assert main(["train", "shakespeare", "--backend", backend, *options]) == 0
        lines = (folder / "metrics.jsonl").read_text(encoding="ascii").splitlines()
        figures.append([list(json.loads(line).values()) for line in lines])
    np.testing.assert_allclose(figures[1], figures[0], rtol=0, atol=1e-4)


# ---- long trainings ----------------------------------------------------------------------------------------


def resident() -> int:
    """Bytes that this process has in memory."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096


def growth(reads: bool) -> dict[str, float]:
    """The growth over 3 000 steps: bytes of the host and of the device, and Python objects; and the last loss."""
    device = Device(adapter_of(None))
    rng = np.random.default_rng(0)
    batch = rng.normal(size=(8, 6)).astype(np.float32), rng.integers(0, 4, 8).astype(np.int32)
    losses = perceptron((6, 8, 4), [batch]).run(tk.Lazy(Wgpu(device)), steps=3400)

    def go_on(steps: int) -> tuple[int, int, int]:
        for loss in itertools.islice(losses, steps):
            if reads:
                loss.item()
        gc.collect()
        return resident(), device.statistics["bytes"], len(gc.get_objects())

    before = go_on(300)
    differences = [now - then for now, then in zip(go_on(3000), before, strict=True)]
    return {**dict(zip(("host", "device", "objects"), differences, strict=True)), "loss": next(losses).item()}


@pytest.mark.slow
@pytest.mark.usefixtures("device")
@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read from /proc")
@pytest.mark.parametrize("reads", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_3000_steps_need_no_more_memory(reads: bool) -> None:
    """In a process of its own, as other tests would change its memory."""
    code = f"import json, test_training; print(json.dumps(test_training.growth({reads})))"
    folder = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["host"] < 8 * 2**20
    assert found["device"] <= 2**16
    assert found["objects"] < 300
    assert found["loss"] < 0.9
