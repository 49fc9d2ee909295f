"""Pipelines: kernels that the driver has taken, made once and kept."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import wgpu

PIPELINES = 1024
"""How many are kept, those used last; each takes some 30 kB, and 350 kB where Mesa's driver in software has it."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """How memories are bound: 0 is a uniform, then come those that are read, then those that are written.

    Attributes:
        group: the driver's layout of a bind group.
        whole: the driver's layout of a pipeline, which has this one group.
        reads: how many memories are only read.
        writes: how many are written, or read and written.
    """

    group: Any
    whole: Any
    reads: int
    writes: int


@dataclass(frozen=True, slots=True, eq=False)
class Pipeline:
    """A kernel that the driver has taken, and how memories are bound to it.

    Attributes:
        compiled: the driver's.
        layout: one object for all pipelines that bind as many memories.
    """

    compiled: Any
    layout: Layout


class Pipelines:
    """Those of a device.

    Args:
        device: the driver's.
        most: how many are kept.

    Attributes:
        count: how many have been made.
    """

    def __init__(self, device: Any, most: int = PIPELINES) -> None:
        self._device = device
        self._most = most
        self._kept: OrderedDict[tuple[str, int, int], Pipeline] = OrderedDict()
        self._layouts: dict[tuple[int, int], Layout] = {}
        self.count = 0

    def known(self, text: str, reads: int, writes: int) -> Pipeline | None:
        """One that is kept."""
        key = text, reads, writes
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def made(self, text: str, reads: int, writes: int) -> Pipeline:
        """A new one, which is kept."""
        layout = self._layout(reads, writes)
        module = self._device.create_shader_module(code=text)
        compiled = self._device.create_compute_pipeline(
            layout=layout.whole, compute={"module": module, "entry_point": "main"}
        )
        made = self._kept[text, reads, writes] = Pipeline(compiled, layout)
        self.count += 1
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return made

    def _layout(self, reads: int, writes: int) -> Layout:
        found = self._layouts.get((reads, writes))
        if found is None:
            kinds = ["uniform", *["read-only-storage"] * reads, *["storage"] * writes]
            group = self._device.create_bind_group_layout(
                entries=[
                    {"binding": i, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": kind}}
                    for i, kind in enumerate(kinds)
                ]
            )
            whole = self._device.create_pipeline_layout(bind_group_layouts=[group])
            found = self._layouts[reads, writes] = Layout(group, whole, reads, writes)
        return found
