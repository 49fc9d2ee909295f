"""What both articles say of the library as such: its two layers, where tensors come from and how they get out."""

from __future__ import annotations

import ast
import copy
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tensorken as tk
import tensorken_core
from tensorken_numpy.backend import Numpy


@pytest.mark.feature(1, 100)
def test_the_user_layer_knows_no_backend() -> None:
    packages = (Path(tk.__file__).parent, Path(tensorken_core.__file__).parent)
    files = [file for package in packages for file in package.rglob("*.py")]
    for file in files:
        nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
        imported = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
        imported |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        roots = {name.partition(".")[0] for name in imported}
        assert not roots & {"numpy", "tensorken_numpy", "tensorken_reference", "tensorken_string"}, file
    assert {"tensor.py", "reductions.py", "reverse.py"} <= {file.name for file in files}


@pytest.mark.feature(4)
def test_a_backends_own_op_is_used_there_alone(close: Callable[..., None]) -> None:
    class Own(Numpy):
        """numpy with a sigmoid of its own."""

        calls = 0

        def sigmoid(self, x: Any) -> Any:
            self.calls += 1
            return 1.0 / (1.0 + self.exp(-x))

    own, points = Own(), [-1.0, 0.0, 2.0]
    results = []
    for backend in (Numpy(), own):
        x = tk.tensor(points, backend=backend)
        results.append([tk.sigmoid(x).tolist(), tk.elementwise_grad(tk.sigmoid)(x).tolist()])
        assert bool(own.calls) == (backend is own)
    for plain, fast in zip(*results, strict=True):
        assert fast == pytest.approx(plain, rel=1e-6)


@pytest.mark.feature(5)
def test_axes_sizes_and_shapes(backend: str) -> None:
    flat, row, column = tk.ones(37), tk.ones((1, 37)), tk.ones((37, 1))
    assert [(t.ndim, t.size) for t in (flat, row, column)] == [(1, 37), (2, 37), (2, 37)]
    assert [t.shape for t in (flat[0], row[0, 0], column[0, 0])] == [()] * 3
    block = tk.linspace(0.0, 23.0, 24).reshape(2, 3, 4)
    assert (block[0, 0, 0].item(), block[1, 2, 3].item()) == (0.0, 23.0)
    assert (block.backend, block.dtype) == (backend, tk.float32)


@pytest.mark.feature(7, 165)
def test_dtypes(backend: str) -> None:
    data: dict[str, Any] = {"float32": [1.5, 2.5], "int32": [1, 2], "bool": [True, False]}
    for dtype, values in data.items():
        assert tk.tensor(values).dtype.name == dtype
        assert tk.tensor(values).tolist() == values
    for dtype in ("float64", "float32", "int64", "int32"):
        t = tk.tensor([1, 2], dtype)
        assert (t.dtype.name, (t + t).dtype.name, t.astype("float64").tolist()) == (dtype, dtype, [1.0, 2.0])
    assert (tk.tensor([1, 2]) * 2.5).dtype is tk.float32
    assert (tk.tensor([1, 2], "int64") + tk.tensor([1, 2])).dtype is tk.int64


@pytest.mark.feature(11, 102)
def test_a_tensor_is_an_interpreter_and_a_representation(backend: str) -> None:
    t = tk.tensor([1.0, 2.0])
    assert type(t) is tk.Tensor
    again = tk.Tensor(t.interpreter, t.representation)
    assert (again.shape, again.dtype, again.tolist()) == ((2,), tk.float32, [1.0, 2.0])

    def look(x: tk.Tensor) -> tk.Tensor:
        # Inside a transform it is the same class over another interpreter.
        assert type(x) is tk.Tensor
        assert type(x.interpreter).__name__ == "Forward"
        assert x.interpreter.below is t.interpreter
        return x

    tk.jvp(look, (t,), (t,))


@pytest.mark.feature(175)
def test_creation(backend: str) -> None:
    x = tk.tensor([[1.0, 2.0, 3.0]], "float64")
    made = {
        "zeros": (tk.zeros((1, 2)), [[0.0, 0.0]]),
        "ones": (tk.ones(2), [1.0, 1.0]),
        "full": (tk.full((2,), 7.5), [7.5, 7.5]),
        "zeros_like": (tk.zeros_like(x), [[0.0, 0.0, 0.0]]),
        "ones_like": (tk.ones_like(x), [[1.0, 1.0, 1.0]]),
        "full_like": (tk.full_like(x, 2.5), [[2.5, 2.5, 2.5]]),
        "arange": (tk.arange(1, 6, 2), [1, 3, 5]),
    }
    for name, (t, values) in made.items():
        assert t.tolist() == values, name
        assert t.backend == backend
        assert t.dtype.name == (
            "float64" if name.endswith("like") else "int32" if name == "arange" else "float32"
        )


@pytest.mark.feature(175)
def test_random_numbers_depend_only_on_the_seed() -> None:
    found = [
        tk.randn((2, 3), random.Random(0), backend=name).tolist() for name in ("numpy", "reference", "numpy")
    ]
    assert found[0] == found[1] == found[2]
    assert tk.randn((2, 3), random.Random(1)).tolist() != found[0]
    many = tk.randn((4000,), random.Random(2), backend="numpy")
    assert many.mean().item() == pytest.approx(0.0, abs=0.06)
    assert many.square().mean().item() == pytest.approx(1.0, abs=0.08)


@pytest.mark.feature(6, 180)
def test_the_ways_out(backend: str) -> None:
    t = tk.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert t.ravel().tolist() == [1.0, 2.0, 3.0, 4.0]
    assert t[1, 0].item() == 3.0
    with pytest.raises(ValueError, match=r"item: shape \(2, 2\) has 4 elements"):
        t.item()
    assert (t @ t).realize().tolist() == [[7.0, 10.0], [15.0, 22.0]]
    other = {"numpy": "reference", "reference": "numpy"}[backend]
    moved = t.to(other)
    assert (moved.backend, moved.tolist(), t.backend) == (other, t.tolist(), backend)
    with pytest.raises(ValueError, match="different backends"):
        moved + t
    assert copy.deepcopy(t).tolist() == t.tolist()


@pytest.mark.feature(181)
def test_what_is_below_a_derivative(backend: str) -> None:
    seen: list[Any] = []

    def f(x: tk.Tensor) -> tk.Tensor:
        stopped = tk.stop_gradient(x)
        seen.append((float(x), bool(x > 0), str(x), stopped.item()))
        return x * stopped

    assert tk.grad(f)(3.0).item() == 3.0
    assert tk.derivative(f)(3.0).item() == 3.0
    assert seen == [(3.0, True, "3.0", 3.0)] * 2


@pytest.mark.feature(90)
def test_forward_mode_keeps_no_tape() -> None:
    """Each value of a long computation is 80 kB: kept, a thousand of them would be 80 MB, on top of their tangents."""

    def long(x: tk.Tensor) -> tk.Tensor:
        for _ in range(1000):
            x = (x * 1.0001).exp() * 0.3
        return x

    x = tk.full((10_000,), 0.5, "float64", backend="numpy")
    tracemalloc.start()
    try:
        _, tangent = tk.jvp(long, (x,), (x,))
        tangent.realize()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5_000_000
