"""The suites by name: their peers, and the functions that make their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import cluster
import gpu
import isolated
import modules
import page
import peer_comparison
import self_comparison
from harness import Row
from libraries import COMPILED, EAGER

TITLES = {"jax": "JAX", "torch": "PyTorch", "torch_compile": "torch.compile"}

GPU_TITLES = {"copy": "copy", "vendor": "vendor"}

MODULE_TITLES = {"torch": "PyTorch", "softmax": "PyTorch, explicit softmax"}


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite: its peers, and a function from the chosen peers and a part of a name to the rows."""

    peers: tuple[str, ...]
    rows: Callable[[Sequence[str], str], Iterator[Row]]
    titles: Mapping[str, str] = field(default_factory=lambda: TITLES)
    where: Callable[[], str] = lambda: ""  # a line below the table on the page


SUITES = {
    "traced": Suite(COMPILED, peer_comparison.traced),
    "xla": Suite(("jax",), partial(peer_comparison.on_backend, "jax")),
    "pytorch": Suite(("torch",), partial(peer_comparison.on_backend, "torch")),
    "eager": Suite(EAGER, peer_comparison.eager),
    "modules": Suite(("torch", "softmax"), modules.training, MODULE_TITLES, page.machine),
    "calls": Suite(("jit(grad(f))",), self_comparison.calls),
    "backward": Suite(("forward",), self_comparison.backward),
    "checkpoint": Suite(("plain",), self_comparison.checkpoint),
    "cluster": Suite(("few",), cluster.step_costs, {"few": "4 workers"}),
    "memory": Suite(COMPILED, isolated.memory),
    "preparation": Suite(("jax",), isolated.preparation),
    "machine_code_memory": Suite(COMPILED, isolated.machine_code_memory),
    "machine_code_preparation": Suite(("jax",), isolated.machine_code_preparation),
    "gpu_in_software": Suite(("numpy", "naive"), gpu.in_software, where=gpu.adapter),
    "gpu_by_the_clock": Suite(("numpy", "naive"), gpu.by_the_clock, where=gpu.processors),
    "gpu": Suite(("numpy", "naive", "copy", "vendor"), gpu.in_hardware, GPU_TITLES, gpu.adapter),
    "kept": Suite(("jax", "torch"), peer_comparison.kept),  # these are the last, as they change the allocator
    "machine_code": Suite(COMPILED, peer_comparison.machine_code),
}
