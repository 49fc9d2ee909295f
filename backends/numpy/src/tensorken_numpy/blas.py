"""The kernels that OpenBLAS runs.  It may mistake a new processor for an old one, which halves the speed."""

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
                core_name: bytes | None = function()
                return None if core_name is None else core_name.decode("ascii", "replace")
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

    kernel_names = kernels()
    yield f"numpy {np.__version__}, " + (
        f"OpenBLAS with kernels for {kernel_names}" if kernel_names else "a BLAS other than its OpenBLAS"
    )
    if (
        kernel_names in NARROW_KERNELS
        and processor_features() >= AVX512_FEATURES
        and platform.machine() in ("x86_64", "AMD64")
    ):
        override = os.environ.get(VARIABLE)
        reason = f"because {VARIABLE} is {override}" if override else "as it does not know this processor"
        yield (
            f"OpenBLAS does not use AVX-512, {reason}: set {VARIABLE}=SkylakeX in the environment before Python starts "
            f"to halve the time of matrix products"
        )
