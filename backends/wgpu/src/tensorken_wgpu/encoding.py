"""Encoding: kernels that wait, written down for the driver in one pass.

There are three calls a kernel, and they are most of what a kernel costs the host.  wgpu wraps each of them to look for
errors, and makes an array of no offsets, which takes twice the time of the call itself; but errors within a pass come
when its encoder is finished.  So these three, and those that begin and end a pass, are called directly, where wgpu has
them where they are today; else as its documentation says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Waiting = tuple[Any, Any, tuple[int, int, int]]
"""A pipeline and a bind group of the driver's, and how many workgroups."""


def _direct() -> Any:
    """The driver's own functions, and its null; None where wgpu does not have them as we know them."""
    try:
        from wgpu.backends.wgpu_native import ffi, lib
    except ImportError:
        return None
    names = ("SetPipeline", "SetBindGroup", "DispatchWorkgroups", "End", "Release")
    functions = [getattr(lib, f"wgpuComputePassEncoder{name}", None) for name in names]
    functions.append(getattr(lib, "wgpuCommandEncoderBeginComputePass", None))
    return (*functions, ffi.NULL) if None not in functions else None


DIRECT = _direct()


def encode(encoder: Any, waiting: Sequence[Waiting], direct: Any = DIRECT) -> None:
    """Write down kernels in a pass of their own; each sees what those before it have written."""
    if direct is None or not hasattr(encoder, "_internal"):
        _checked(encoder, waiting)
    else:
        _unchecked(encoder._internal, waiting, *direct)


def _checked(encoder: Any, waiting: Sequence[Waiting]) -> None:
    compute = encoder.begin_compute_pass()
    bound = last = None
    for pipeline, group, groups in waiting:
        if pipeline is not last:
            compute.set_pipeline(pipeline)
            last = pipeline
        if group is not bound:
            compute.set_bind_group(0, group)
            bound = group
        compute.dispatch_workgroups(*groups)
    compute.end()


def _unchecked(
    encoder: Any,
    waiting: Sequence[Waiting],
    set_pipeline: Any,
    set_group: Any,
    dispatch: Any,
    end: Any,
    release: Any,
    begin: Any,
    null: Any,
) -> None:
    compute = begin(encoder, null)
    bound = last = None
    for pipeline, group, (x, y, z) in waiting:
        if pipeline is not last:
            set_pipeline(compute, pipeline._internal)
            last = pipeline
        if group is not bound:
            set_group(compute, 0, group._internal, 0, null)
            bound = group
        dispatch(compute, x, y, z)
    end(compute)
    release(compute)
