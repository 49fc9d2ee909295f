"""The suites by name: whom each runs against, and what makes its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import alone
import gpu
import modules
import ours
import page
import timed
from harness import Row
from libraries import COMPILED, EAGER

TITLES = {"jax": "JAX", "torch": "PyTorch", "torch_compile": "torch.compile"}

GPU_TITLES = {"copy": "a copy", "vendor": "the vendor's"}

MODULE_TITLES = {"torch": "PyTorch", "softmax": "its softmax written out"}


@dataclass(frozen=True, slots=True)
class Suite:
    """The peers, and from those that are chosen and a part of a name the rows."""

    peers: tuple[str, ...]
    rows: Callable[[Sequence[str], str], Iterator[Row]]
    titles: Mapping[str, str] = field(default_factory=lambda: TITLES)
    where: Callable[[], str] = lambda: ""  # a line on the page below the table


SUITES = {
    "traced": Suite(COMPILED, timed.traced),
    "eager": Suite(EAGER, timed.eager),
    "modules": Suite(("torch", "softmax"), modules.training, MODULE_TITLES, page.machine),
    "calls": Suite(("jit(grad(f))",), ours.calls),
    "backward": Suite(("forward",), ours.backward),
    "checkpoint": Suite(("plain",), ours.checkpoint),
    "memory": Suite(COMPILED, alone.memory),
    "preparation": Suite(("jax",), alone.preparation),
    "gpu_in_software": Suite(("numpy", "naive"), gpu.in_software, where=gpu.adapter),
    "gpu_by_the_clock": Suite(("numpy", "naive"), gpu.by_the_clock, where=gpu.processors),
    "gpu": Suite(("numpy", "naive", "copy", "vendor"), gpu.in_hardware, GPU_TITLES, gpu.adapter),
    "kept": Suite(("jax", "torch"), timed.kept),  # the last: from there on the allocator is another
}
