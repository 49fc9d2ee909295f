"""Train on several devices of JAX: the same program, on inputs that are placed differently.

    pip install tensorken tensorken-jax
    XLA_FLAGS=--xla_force_host_platform_device_count=4 python examples/sharding.py

XLA makes the devices out of one processor here; on a machine with GPUs or TPUs leave out XLA_FLAGS.  For each placement
the program draws which devices hold which part of the examples and of the weights, and prints the losses of five steps.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import tensorken as tk

EXAMPLES, INPUTS, HIDDEN, CLASSES = 32, 64, 128, 10

rng = np.random.default_rng(0)
WEIGHTS = [0.1 * rng.normal(size=shape).astype("float32") for shape in ((INPUTS, HIDDEN), (HIDDEN, CLASSES))]
X = rng.normal(size=(EXAMPLES, INPUTS)).astype("float32")
LABELS = rng.integers(0, CLASSES, EXAMPLES).astype("int32")

MESH = Mesh(np.array(jax.devices()), ("devices",))
ROWS, COLUMNS = (NamedSharding(MESH, PartitionSpec(*spec)) for spec in (["devices"], [None, "devices"]))
ALL = NamedSharding(MESH, PartitionSpec())

PLACEMENTS = {
    "data parallel": {"weights": (ALL, ALL), "x": ROWS, "hidden": ROWS},
    "tensor parallel": {"weights": (COLUMNS, ROWS), "x": ALL, "hidden": COLUMNS},
}


def losses(backend: str, weights: Any, x: Any, hidden: Any) -> tuple[list[tk.Tensor], list[float]]:
    """The weights after five steps, and the losses, with the weights, the inputs and the hidden layer placed so."""

    def loss(weights: Any, x: Any, labels: Any) -> Any:
        """The mean cross-entropy of a network with one hidden layer."""
        y = tk.with_placement(tk.relu(x @ weights[0]), hidden)
        return -tk.log_softmax(y @ weights[1], -1)[tk.arange(EXAMPLES), labels].mean()

    @tk.jit
    def step(weights: Any, x: Any, labels: Any) -> Any:
        """New weights, and the loss of the old ones."""
        value, gradients = tk.value_and_grad(loss)(weights, x, labels)
        return [w - 0.5 * g for w, g in zip(weights, gradients, strict=True)], value

    with tk.use_backend(backend):
        placed = [tk.tensor(w).to(backend, to) for w, to in zip(WEIGHTS, weights, strict=True)]
        data, labels = tk.tensor(X).to(backend, x), tk.tensor(LABELS)
        found = []
        for _ in range(5):
            placed, value = step(placed, data, labels)
            found.append(value.item())
        return placed, found


def picture(x: tk.Tensor) -> list[str]:
    """The parts of a matrix as boxes, each with the numbers of the devices that hold it."""
    parts: dict[tuple[int, int], list[str]] = {}
    for device, (rows, columns) in x.placement.devices_indices_map(x.shape).items():
        parts.setdefault((rows.start or 0, columns.start or 0), []).append(str(device.id))
    firsts = sorted({row for row, _ in parts})
    lines = []
    for first in firsts:
        line = "|".join([f" {' '.join(parts[at])} ".center(5) for at in sorted(parts) if at[0] == first])
        lines += [f"+{'+'.join('-' * len(part) for part in line.split('|'))}+", f"|{line}|"]
    return [*lines, lines[0]]


def beside(*columns: list[str]) -> str:
    """Blocks of lines side by side."""
    height, widths = max(map(len, columns)), [max(map(len, column)) for column in columns]
    filled = [column + [""] * (height - len(column)) for column in columns]
    rows = zip(*filled, strict=True)
    return "\n".join(
        ["  ".join([part.ljust(n) for part, n in zip(row, widths, strict=True)]).rstrip() for row in rows]
    )


def shown(losses: list[float]) -> str:
    """The losses with five decimals."""
    return " ".join([f"{loss:.5f}" for loss in losses])


def main() -> None:
    """Print the losses on one device, and then those of each placement with pictures."""
    print("one device:", shown(losses("numpy", (None, None), None, None)[1]))
    for name, places in PLACEMENTS.items():
        weights, found = losses("jax", **places)
        x = tk.tensor(X).to("jax", places["x"])
        named = {"examples": x, "first weights": weights[0], "second weights": weights[1]}
        print(f"\n{name}\n")
        print(beside(*[[title, *picture(matrix)] for title, matrix in named.items()]))
        print(f"\nlosses: {shown(found)}")


if __name__ == "__main__":
    main()
