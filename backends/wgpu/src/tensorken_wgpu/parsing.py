"""Parsing: the C types in which wgpu speaks to its driver, parsed at once and not one by one.

wgpu writes a type in C wherever it needs one, and cffi parses that when it first meets it, each time behind the names
of all the four hundred types that wgpu declares.  Some forty of them are met until the first kernel has run, which is
half of what it takes to open a device.  Here they are parsed together, as the parameters of one function, and put where
cffi looks first: into the one thing of cffi's own on which this rests, and only if cffi has put there what was just
parsed.  Else nothing is done, and each is parsed when it is met.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from typing import Any

MET = (
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
"""The types as wgpu 0.32 writes them: pointers, arrays, functions, and numbers as large as a pointer."""


def _wgpus() -> Any:
    """The object by which wgpu asks cffi; None where it reaches its driver in another way."""
    try:
        from wgpu.backends.wgpu_native import ffi
    except ImportError:
        return None
    return ffi


WGPUS = _wgpus()


def parse_together(types: Sequence[str] = MET, ffi: Any = WGPUS) -> int:
    """Parse types of C at once, for whoever will ask for them one by one; how many are known after that.

    Args:
        types: in C; those are passed over in which something is not declared.
        ffi: wgpu's.

    >>> from cffi import FFI
    >>> ffi = FFI()
    >>> ffi.cdef("typedef struct { int x; } WGPUPoint;")
    >>> parse_together(["WGPUPoint *", "WGPUPoint[]", "void(WGPUPoint *)", "WGPULine *"], ffi)
    3
    """
    kept = getattr(ffi, "_parsed_types", None)
    if not isinstance(kept, dict):
        return 0
    with contextlib.suppress(Exception):  # nothing but time is lost
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
    """A type as it is written among parameters, where arrays would be taken for pointers and functions need a star."""
    if name.endswith("[]"):
        return f"{name[:-2]}(*)[]"
    return name.replace("void(", "void(*)(", 1) if name.startswith("void(") else name
