"""Pipelines: kernels compiled by the driver, several at once, and cached."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import wgpu

from tensorken_wgpu.device.modules import create_module

MAX_PIPELINES = 1024
"""The most pipelines that are cached; the least recently used are dropped.  Each takes some 30 kB, and 350 kB with
Mesa's software driver."""


MAX_THREADS = 16
"""The most threads that compile at once."""


class Source(NamedTuple):
    """A kernel to be compiled.

    Attributes:
        text: in WGSL; `main` is its entry point, binding 0 a uniform.
        reads: the number of memories that it only reads: the bindings from 1 on.
        writes: the number of memories that it writes, or reads and writes: the last bindings.
        is_proved: whether it needs no run-time checks, see `modules`.
    """

    text: str
    reads: int
    writes: int
    is_proved: bool = False


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
        immediate_size: bytes that each kernel may get when it runs.
        most: the most pipelines that are cached.

    Attributes:
        count: the number of pipelines created.
    """

    def __init__(self, device: Any, immediate_size: int = 0, most: int = MAX_PIPELINES) -> None:
        self._device = device
        self._immediate_size = immediate_size
        self._most = most
        self._cache: OrderedDict[Source, Pipeline] = OrderedDict()
        self._layouts: dict[tuple[int, int], Layout] = {}
        self.count = 0

    def cached(self, source: Source) -> Pipeline | None:
        """A cached pipeline, or None."""
        pipeline = self._cache.get(source)
        if pipeline is not None:
            self._cache.move_to_end(source)
        return pipeline

    def make(self, source: Source) -> Pipeline:
        """A new pipeline, which is cached.

        Raises:
            GPUError: if the driver refuses it.
        """
        return self._keep(source, self._compiled(source, self._layout(source.reads, source.writes)))

    def missing(self, sources: Collection[Source]) -> list[Source]:
        """The sources whose pipelines are not cached, each once."""
        return [source for source in dict.fromkeys(sources) if source not in self._cache]

    def make_all(self, sources: Collection[Source]) -> None:
        """New pipelines, which are cached, made in several threads; those that the driver refuses are left out.

        The driver compiles while Python's lock is released, and reports an error in the thread of its call.
        """
        layouts = [self._layout(source.reads, source.writes) for source in sources]
        try:
            with ThreadPoolExecutor(min(len(sources), MAX_THREADS, os.cpu_count() or 1) or 1) as pool:
                compiled = [*pool.map(self._compiled_or_none, sources, layouts)]
        except RuntimeError:  # Python is ending, and starts no threads
            return
        for source, pipeline in zip(sources, compiled, strict=True):
            if pipeline is not None:
                self._keep(source, pipeline)

    def _compiled_or_none(self, source: Source, layout: Layout) -> Pipeline | None:
        try:
            return self._compiled(source, layout)
        except (wgpu.GPUError, RuntimeError):
            return None

    def _compiled(self, source: Source, layout: Layout) -> Pipeline:
        module = create_module(self._device, source.text, source.is_proved)
        compiled = self._device.create_compute_pipeline(
            layout=layout.pipeline, compute={"module": module, "entry_point": "main"}
        )
        return Pipeline(compiled, layout)

    def _keep(self, source: Source, pipeline: Pipeline) -> Pipeline:
        self._cache[source] = pipeline
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
            pipeline = self._device.create_pipeline_layout(
                bind_group_layouts=[bind_group], immediate_size=self._immediate_size
            )
            layout = self._layouts[reads, writes] = Layout(bind_group, pipeline, reads, writes)
        return layout
