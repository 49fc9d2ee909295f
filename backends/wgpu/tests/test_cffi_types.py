"""wgpu's C types are parsed before wgpu uses them, with the same result as when wgpu parses them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from cffi import FFI

from tensorken_wgpu.device.cffi_types import parse_together

DECLARED = """
typedef struct WGPUPoint { int x; } WGPUPoint;
typedef struct WGPULineImpl* WGPULine;
typedef int (*WGPUDraw)(WGPULine);
"""
TYPES = [
    "WGPUPoint *",
    "WGPUPoint * ",
    "WGPUPoint[]",
    "WGPULine[]",
    "char []",
    "intptr_t",
    "void(WGPULine, WGPUDraw, void *)",
]


@pytest.fixture
def ffi() -> Any:
    made = FFI()
    made.cdef(DECLARED)
    return made


def test_types_equal_those_parsed_one_by_one(ffi: Any) -> None:
    assert parse_together(TYPES, ffi) == len(TYPES)
    together = {name: ffi._parsed_types.pop(name) for name in TYPES}
    for name in TYPES:
        if name.startswith("void("):
            ffi._typeof(name, consider_function_as_funcptr=True)
        else:
            ffi.typeof(name)
    assert {name: ffi._parsed_types[name] for name in TYPES} == together


def test_an_unknown_cache_of_cffi_is_not_changed(ffi: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Differently(dict[str, Any]):
        """Stores parsed types in another form."""

        def __setitem__(self, name: str, found: Any) -> None:
            super().__setitem__(name, [found])

    assert parse_together(["WGPUPoint *", "WGPUCircle *"], ffi) == 1
    ffi._parsed_types = kept = Differently()
    assert parse_together(TYPES, ffi) == 0
    assert not kept.keys() & set(TYPES)
    for other in (None, object()):
        assert parse_together(TYPES, other) == 0
    ffi._parsed_types = {}
    assert parse_together(["WGPUPoint (*)("], ffi) == 0


FIRST = """
import tensorken as tk
from tensorken_wgpu.device.cffi_types import C_TYPES, WGPU_FFI
assert (tk.tensor([1.0, 2.0], backend="wgpu") + 1.0).tolist() == [2.0, 3.0]
met = [name for name in WGPU_FFI._parsed_types if not name.startswith("__")]
print(set(C_TYPES) <= set(met), len(met) - len(C_TYPES))
"""


def test_a_device_needs_no_other_types(device: Any) -> None:
    """If this fails, wgpu uses other types than before, and opening a device takes longer for each."""
    done = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout == "True 3\n"  # all of them at once, and two that wgpu parses when it is imported
