"""Train on several devices of JAX: the same program, on inputs that are placed differently.

    pip install tensorken tensorken-jax
    XLA_FLAGS=--xla_force_host_platform_device_count=4 python examples/sharding.py

XLA makes the devices out of one processor here; on a machine with GPUs or TPUs leave out XLA_FLAGS.  Each line shows
the losses of five steps: on one device, with the examples divided among the devices, and with the weights divided.
"""

from __future__ import annotations

from collections.abc import Callable
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


def loss(weights: Any, x: Any, labels: Any) -> Any:
    """The mean cross-entropy of a network with one hidden layer."""
    logits = tk.relu(x @ weights[0]) @ weights[1]
    return -tk.log_softmax(logits, -1)[tk.arange(EXAMPLES), labels].mean()


@tk.jit
def step(weights: Any, x: Any, labels: Any) -> Any:
    """New weights, and the loss of the old ones."""
    value, gradients = tk.value_and_grad(loss)(weights, x, labels)
    return [w - 0.5 * g for w, g in zip(weights, gradients, strict=True)], value


def losses(place: Callable[[np.ndarray, PartitionSpec], Any], *specs: PartitionSpec) -> list[float]:
    """The losses of five steps, with the weights, the inputs and the labels placed as the specs say."""
    first, second, x, labels = map(place, (*WEIGHTS, X, LABELS), specs)
    weights, found = [first, second], []
    for _ in range(5):
        weights, value = step(weights, x, labels)
        found.append(value.item())
    return found


def main() -> None:
    """Print the losses of the three placements."""
    mesh = Mesh(np.array(jax.devices()), ("devices",))

    def sharded(a: np.ndarray, spec: PartitionSpec) -> tk.Tensor:
        return tk.from_dlpack(jax.device_put(a, NamedSharding(mesh, spec)))

    whole, rows, columns = PartitionSpec(), PartitionSpec("devices"), PartitionSpec(None, "devices")
    tk.use_backend("numpy")
    print("one device ", *losses(lambda a, spec: tk.tensor(a), whole, whole, whole, whole))
    tk.use_backend("jax")
    print("data       ", *losses(sharded, whole, whole, rows, rows))
    print("weights    ", *losses(sharded, columns, rows, whole, whole))


if __name__ == "__main__":
    main()
