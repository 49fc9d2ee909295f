"""Which kernels numpy's BLAS runs, and whether it took the processor for an older one, which costs half the speed."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Iterator
from pathlib import Path

NEEDED = {"avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl"}
"""What a processor must have for OpenBLAS's kernels for AVX-512."""

NARROW = {"Haswell", "Zen", "Sandybridge", "Nehalem", "Prescott", "Core2", "Katmai", "Generic"}
"""Kernels of OpenBLAS for x86 that use at most half of what AVX-512 can do."""

VARIABLE = "OPENBLAS_CORETYPE"
"""Says which kernels OpenBLAS is to use, whatever the processor is."""

NAMES = ("scipy_openblas_get_corename64_", "openblas_get_corename64_", "openblas_get_corename")


def kernels() -> str | None:
    """What the OpenBLAS that came with numpy calls the processor; None if numpy has another BLAS."""
    import numpy as np

    folder = Path(np.__file__).resolve().parent
    for library in [*folder.parent.glob("numpy.libs/*openblas*"), *folder.glob(".dylibs/*openblas*")]:
        try:
            loaded = ctypes.CDLL(str(library))
        except OSError:
            continue
        for name in NAMES:
            function = getattr(loaded, name, None)
            if function is not None:
                function.restype = ctypes.c_char_p
                found: bytes | None = function()
                return None if found is None else found.decode("ascii", "replace")
    return None


def abilities() -> set[str]:
    """The flags of the processor, as Linux lists them; empty elsewhere."""
    try:
        text = Path("/proc/cpuinfo").read_text("ascii", "replace")
    except OSError:
        return set()
    line = next((line for line in text.splitlines() if line.startswith("flags")), "")
    return set(line.partition(":")[2].split())


def report() -> Iterator[str]:
    """Lines for `tensorken doctor`."""
    import numpy as np

    found = kernels()
    yield f"numpy {np.__version__}, " + (
        f"OpenBLAS with kernels for {found}" if found else "a BLAS of its own"
    )
    if found in NARROW and abilities() >= NEEDED and platform.machine() in ("x86_64", "AMD64"):
        chosen = os.environ.get(VARIABLE)
        why = f"because {VARIABLE} is {chosen}" if chosen else "as it does not know this processor"
        yield (
            f"OpenBLAS leaves AVX-512 alone, {why}: with {VARIABLE}=SkylakeX in the environment before Python starts, "
            f"matrix products take about half the time"
        )
