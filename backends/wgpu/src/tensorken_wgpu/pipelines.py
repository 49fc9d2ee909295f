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
    """How memories are bound: binding 0 is a uniform, then come memories that are read, then memories that are
    written.

    Attributes:
        bind_group: the driver's layout of a bind group.
        pipeline: the driver's layout of a pipeline with this one bind group.
        reads: the number of memories that are only read.
        writes: the number of memories that are written, or read and written.
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
        layout: shared by all pipelines with the same numbers of bindings.
    """

    compiled: Any
    layout: Layout


class Pipelines:
    """The pipelines of a device.

    Args:
        device: of the driver.
        most: the most pipelines that are cached.

    Attributes:
        count: the number of pipelines created.
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
        pipeline = self._cache.get(key)
        if pipeline is not None:
            self._cache.move_to_end(key)
        return pipeline

    def make(self, text: str, reads: int, writes: int) -> Pipeline:
        """A new pipeline, which is cached."""
        layout = self._layout(reads, writes)
        module = self._device.create_shader_module(code=text)
        compiled = self._device.create_compute_pipeline(
            layout=layout.pipeline, compute={"module": module, "entry_point": "main"}
        )
        pipeline = self._cache[text, reads, writes] = Pipeline(compiled, layout)
        self.count += 1
        if len(self._cache) > self._most:
            self._cache.popitem(last=False)
        return pipeline

    def _layout(self, reads: int, writes: int) -> Layout:
        layout = self._layouts.get((reads, writes))
        if layout is None:
            types = ["uniform", *["read-only-storage"] * reads, *["storage"] * writes]
            bind_group = self._device.create_bind_group_layout(
                entries=[
                    {"binding": i, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": binding_type}}
                    for i, binding_type in enumerate(types)
                ]
            )
            pipeline = self._device.create_pipeline_layout(bind_group_layouts=[bind_group])
            layout = self._layouts[reads, writes] = Layout(bind_group, pipeline, reads, writes)
        return layout
