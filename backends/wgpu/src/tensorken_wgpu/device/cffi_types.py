"""Parse the C types that wgpu uses all at once, which halves the time to open a device.

wgpu writes a type in C wherever it needs one, and cffi parses it at its first use, each time behind the names of
all four hundred types that wgpu declares.  About forty types are used until the first kernel has run.  Here these
are parsed together, as the parameters of one function, and put into cffi's cache.  The cache is an internal of
cffi, so it is used only if it holds the function's type after parsing; otherwise each type is parsed at its first
use.
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
    """wgpu's cffi object; None if wgpu does not call its driver by cffi."""
    try:
        from wgpu.backends.wgpu_native import ffi
    except ImportError:
        return None
    return ffi


WGPU_FFI = _wgpu_ffi()


def parse_together(types: Sequence[str] = C_TYPES, ffi: Any = WGPU_FFI) -> int:
    """Parse C types at once, so that later uses find them in the cache; returns the number of types in the cache.

    Args:
        types: in C; types with undeclared names are skipped.
        ffi: of wgpu.

    >>> from cffi import FFI
    >>> ffi = FFI()
    >>> ffi.cdef("typedef struct { int x; } WGPUPoint;")
    >>> parse_together(["WGPUPoint *", "WGPUPoint[]", "void(WGPUPoint *)", "WGPULine *"], ffi)
    3
    """
    cache = getattr(ffi, "_parsed_types", None)
    if not isinstance(cache, dict):
        return 0
    with contextlib.suppress(Exception):  # only time is lost
        declared = set(ffi.list_types()[0])
        types = [name for name in types if declared.issuperset(re.findall(r"WGPU\w+", name))]
        signature = f"void(*)({', '.join(map(_parameter, types))})"
        parsed = ffi.typeof(signature)
        if cache[signature] == (parsed, False):
            for name, parameter in zip(types, parsed.args, strict=True):
                array, function = name.endswith("[]"), name.startswith("void(")
                cache.setdefault(name, (parameter.item if array else parameter, function))
            return len(types)
    return 0


def _parameter(name: str) -> str:
    """A type as a parameter: arrays would decay to pointers, and functions need a star."""
    if name.endswith("[]"):
        return f"{name[:-2]}(*)[]"
    return name.replace("void(", "void(*)(", 1) if name.startswith("void(") else name
