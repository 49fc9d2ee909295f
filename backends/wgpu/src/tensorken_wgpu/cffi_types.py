"""Parse the C types that wgpu uses all at once, which halves the time to open a device.

wgpu writes a type in C wherever it needs one, and cffi parses that at the first use, each time behind the names of
all four hundred types that wgpu declares.  Some forty of them are used until the first kernel has run.  Here they
are parsed together, as the parameters of one function, and put into cffi's cache.  That cache is the only internal
of cffi that this relies on, and only if cffi has put there what was just parsed.  Otherwise nothing is done, and
each type is parsed at its first use.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from typing import Any

C_TYPES = (
    "WGPUInstanceDescriptor *",
    "WGPUAdapter[]",
    "WGPUAdapterInfo *",
    "WGPUChainedStruct *",
    "WGPUChainedStruct * ",
    "WGPUNativeLimits *",
    "WGPULimits *",
    "WGPUQueueDescriptor *",
    "WGPUDeviceExtras *",
    "void(WGPUDevice const *, WGPUDeviceLostReason, WGPUStringView, void *, void *)",
    "WGPUDeviceLostCallbackInfo *",
    "void(WGPUDevice const *, WGPUErrorType, WGPUStringView, void *, void *)",
    "WGPUUncapturedErrorCallbackInfo *",
    "WGPUFeatureName[]",
    "WGPUDeviceDescriptor *",
    "void(WGPURequestDeviceStatus, WGPUDevice, WGPUStringView, void *, void *)",
    "WGPURequestDeviceCallbackInfo *",
    "WGPUBufferDescriptor *",
    "WGPUBufferBindingLayout *",
    "WGPUBindGroupLayoutEntry *",
    "WGPUBindGroupLayoutEntry[]",
    "WGPUBindGroupLayoutDescriptor *",
    "WGPUBindGroupLayout[]",
    "WGPUPipelineLayoutDescriptor *",
    "WGPUShaderSourceWGSL *",
    "WGPUShaderModuleDescriptor *",
    "WGPUComputeState *",
    "WGPUComputePipelineDescriptor *",
    "WGPUBindGroupEntry *",
    "WGPUBindGroupEntry[]",
    "WGPUBindGroupDescriptor *",
    "WGPUCommandEncoderDescriptor *",
    "WGPUCommandBufferDescriptor *",
    "WGPUCommandBuffer[]",
    "void(WGPUMapAsyncStatus, WGPUStringView, void *, void *)",
    "WGPUBufferMapCallbackInfo *",
    "WGPUSubmissionIndex *",
    "char []",
    "uint8_t []",
    "uint8_t *",
    "intptr_t",
    "uintptr_t",
    "void *",
)
"""The types as wgpu 0.32 writes them: pointers, arrays, functions, and integers of pointer size."""


def _wgpu_ffi() -> Any:
    """wgpu's cffi object; None if it reaches its driver otherwise."""
    try:
        from wgpu.backends.wgpu_native import ffi
    except ImportError:
        return None
    return ffi


WGPU_FFI = _wgpu_ffi()


def parse_together(types: Sequence[str] = C_TYPES, ffi: Any = WGPU_FFI) -> int:
    """Parse C types at once, so that later uses find them in the cache; how many are known afterwards.

    Args:
        types: in C; those with undeclared names are skipped.
        ffi: of wgpu.

    >>> from cffi import FFI
    >>> ffi = FFI()
    >>> ffi.cdef("typedef struct { int x; } WGPUPoint;")
    >>> parse_together(["WGPUPoint *", "WGPUPoint[]", "void(WGPUPoint *)", "WGPULine *"], ffi)
    3
    """
    kept = getattr(ffi, "_parsed_types", None)
    if not isinstance(kept, dict):
        return 0
    with contextlib.suppress(Exception):  # only time is lost
        declared = set(ffi.list_types()[0])
        types = [name for name in types if declared.issuperset(re.findall(r"WGPU\w+", name))]
        together = f"void(*)({', '.join(map(_parameter, types))})"
        parsed = ffi.typeof(together)
        if kept[together] == (parsed, False):
            for name, found in zip(types, parsed.args, strict=True):
                array, function = name.endswith("[]"), name.startswith("void(")
                kept.setdefault(name, (found.item if array else found, function))
            return len(types)
    return 0


def _parameter(name: str) -> str:
    """A type as a parameter: arrays would decay to pointers, and functions need a star."""
    if name.endswith("[]"):
        return f"{name[:-2]}(*)[]"
    return name.replace("void(", "void(*)(", 1) if name.startswith("void(") else name
