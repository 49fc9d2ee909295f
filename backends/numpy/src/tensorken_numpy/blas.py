"""Which kernels OpenBLAS runs.  It may take a new processor for an old one, which costs half the speed."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Iterator
from pathlib import Path

AVX512_FEATURES = {"avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl"}
"""Processor features that OpenBLAS's AVX-512 kernels require."""

NARROW_KERNELS = {"Haswell", "Zen", "Sandybridge", "Nehalem", "Prescott", "Core2", "Katmai", "Generic"}
"""x86 kernels of OpenBLAS that reach at most half the speed of AVX-512."""

VARIABLE = "OPENBLAS_CORETYPE"
"""Environment variable that overrides OpenBLAS's choice of kernels."""

NAMES = ("scipy_openblas_get_corename64_", "openblas_get_corename64_", "openblas_get_corename")


def kernels() -> str | None:
    """The name of the kernels that the OpenBLAS bundled with numpy runs; None if numpy has another BLAS."""
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


def processor_features() -> set[str]:
    """The processor's feature flags as Linux lists them; empty elsewhere."""
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
    if (
        found in NARROW_KERNELS
        and processor_features() >= AVX512_FEATURES
        and platform.machine() in ("x86_64", "AMD64")
    ):
        chosen = os.environ.get(VARIABLE)
        why = f"because {VARIABLE} is {chosen}" if chosen else "as it does not know this processor"
        yield (
            f"OpenBLAS does not use AVX-512, {why}: set {VARIABLE}=SkylakeX in the environment before Python starts "
            f"to halve the time of matrix products"
        )
