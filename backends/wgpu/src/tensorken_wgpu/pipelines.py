"""Pipelines: kernels compiled by the driver, cached."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import wgpu

MAX_PIPELINES = 1024
"""The most pipelines that are cached; the least recently used are dropped.  Each takes some 30 kB, and 350 kB with
Mesa's software driver."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """How memories are bound: binding 0 is a uniform, followed by memories that are read, then those that are
    written.

    Attributes:
        bind_group: the driver's layout of a bind group.
        pipeline: the driver's layout of a pipeline with this one bind group.
        reads: how many memories are only read.
        writes: how many are written, or read and written.
    """

    bind_group: Any
    pipeline: Any
    reads: int
    writes: int


@dataclass(frozen=True, slots=True, eq=False)
class Pipeline:
    """A compiled kernel, and its layout.

    Attributes:
        compiled: the driver's pipeline.
        layout: shared by all pipelines with as many bindings.
    """

    compiled: Any
    layout: Layout


class Pipelines:
    """The pipelines of a device.

    Args:
        device: of the driver.
        most: how many are cached.

    Attributes:
        count: how many have been made.
    """

    def __init__(self, device: Any, most: int = MAX_PIPELINES) -> None:
        self._device = device
        self._most = most
        self._cache: OrderedDict[tuple[str, int, int], Pipeline] = OrderedDict()
        self._layouts: dict[tuple[int, int], Layout] = {}
        self.count = 0

    def cached(self, text: str, reads: int, writes: int) -> Pipeline | None:
        """A cached pipeline, or None."""
        key = text, reads, writes
        found = self._cache.get(key)
        if found is not None:
            self._cache.move_to_end(key)
        return found

    def make(self, text: str, reads: int, writes: int) -> Pipeline:
        """A new pipeline, which is cached."""
        layout = self._layout(reads, writes)
        module = self._device.create_shader_module(code=text)
        compiled = self._device.create_compute_pipeline(
            layout=layout.pipeline, compute={"module": module, "entry_point": "main"}
        )
        make = self._cache[text, reads, writes] = Pipeline(compiled, layout)
        self.count += 1
        if len(self._cache) > self._most:
            self._cache.popitem(last=False)
        return make

    def _layout(self, reads: int, writes: int) -> Layout:
        found = self._layouts.get((reads, writes))
        if found is None:
            types = ["uniform", *["read-only-storage"] * reads, *["storage"] * writes]
            bind_group = self._device.create_bind_group_layout(
                entries=[
                    {"binding": i, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": binding_type}}
                    for i, binding_type in enumerate(types)
                ]
            )
            pipeline = self._device.create_pipeline_layout(bind_group_layouts=[bind_group])
            found = self._layouts[reads, writes] = Layout(bind_group, pipeline, reads, writes)
        return found
