"""The kernels that OpenBLAS runs.  It may mistake a new processor for an old one, which halves the speed."""

from __future__ import annotations

import ctypes
import os
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

AVX512_FEATURES = {"avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl"}
"""Processor features that OpenBLAS's AVX-512 kernels require."""

NARROW_KERNELS = {"Haswell", "Zen", "Sandybridge", "Nehalem", "Prescott", "Core2", "Katmai", "Generic"}
"""x86 kernels of OpenBLAS that reach at most half the speed of AVX-512."""

VARIABLE = "OPENBLAS_CORETYPE"
"""Environment variable that overrides OpenBLAS's choice of kernels."""

FAULTY_KERNELS = frozenset({"Haswell", "Zen"})
"""Kernels of OpenBLAS, from `FAULTY_SINCE` on, that write beyond a buffer on the stack on AMD's Zen 4 and 5.

They do so for products with inner sizes from 299 on, also where OPENBLAS_CORETYPE asks for them: the process ends by a
segmentation fault, now and then or always.  `np.ones((512, 36)).T @ np.ones((512, 40))` shows it.
"""

FAULTY_SINCE = (0, 3, 34)
"""The version of OpenBLAS; numpy 2.5 has it."""

NAMES = ("scipy_openblas_get_corename64_", "openblas_get_corename64_", "openblas_get_corename")


def kernels() -> str | None:
    """The name of the kernels that the OpenBLAS bundled with numpy runs; None if numpy has another BLAS."""
    return _asked(NAMES)


def version() -> tuple[int, ...]:
    """The version of the OpenBLAS bundled with numpy; empty if numpy has another BLAS."""
    text = _asked(tuple([name.replace("corename", "config") for name in NAMES])) or ""
    found = re.search(r"OpenBLAS (\d+)\.(\d+)\.(\d+)", text)
    return tuple(map(int, found.groups())) if found else ()


def _asked(names: Sequence[str]) -> str | None:
    """The answer of the first of these functions that numpy's OpenBLAS has; None if it has another BLAS."""
    import numpy as np

    folder = Path(np.__file__).resolve().parent
    for library in [*folder.parent.glob("numpy.libs/*openblas*"), *folder.glob(".dylibs/*openblas*")]:
        try:
            loaded = ctypes.CDLL(str(library))
        except OSError:
            continue
        for name in names:
            function = getattr(loaded, name, None)
            if function is not None:
                function.restype = ctypes.c_char_p
                answer: bytes | None = function()
                return None if answer is None else answer.decode("ascii", "replace")
    return None


def processor_features() -> set[str]:
    """The processor's feature flags as Linux lists them; empty elsewhere."""
    return set(_facts().get("flags", "").split())


def is_zen_4_or_5(facts: Mapping[str, str] | None = None, text: str | None = None) -> bool:
    """Whether the processor is of AMD's families Zen 4 or Zen 5.

    Args:
        facts: of the processor, as Linux lists them; None for this one.
        text: of the processor, as Windows describes it; None for this one.

    >>> is_zen_4_or_5({"vendor_id": "AuthenticAMD", "cpu family": "25", "model": "17"})
    True
    >>> is_zen_4_or_5({}, "AMD64 Family 26 Model 68 Stepping 0, AuthenticAMD")
    True
    >>> is_zen_4_or_5({"vendor_id": "AuthenticAMD", "cpu family": "25", "model": "33"})  # Zen 3
    False
    """
    facts = _facts() if facts is None else facts
    found = re.match(
        r"(?:AMD64|x86_64) Family (\d+) Model (\d+) ", platform.processor() if text is None else text
    )
    numbers = found.groups() if found else (facts.get("cpu family", ""), facts.get("model", ""))
    if "AuthenticAMD" not in (facts.get("vendor_id") or text or platform.processor()) or not all(numbers):
        return False
    family, model = map(int, numbers)
    return family == 26 or (
        family == 25 and (0x10 <= model < 0x20 or 0x60 <= model < 0x80 or 0xA0 <= model < 0xB0)
    )


def faulty_kernels() -> frozenset[str]:
    """The kernels of OpenBLAS that overrun their stack on this processor."""
    found = version()
    is_faulty = bool(found) and found >= FAULTY_SINCE and is_zen_4_or_5()
    return FAULTY_KERNELS if is_faulty else frozenset()


def _facts() -> dict[str, str]:
    """What Linux lists of the first processor; empty elsewhere."""
    try:
        text = Path("/proc/cpuinfo").read_text("ascii", "replace")
    except OSError:
        return {}
    lines = text.partition("\n\n")[0].splitlines()
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


def safe_kernels() -> str:
    """Kernels for this processor that do not overrun their stack: the fastest of those."""
    return "SkylakeX" if processor_features() >= AVX512_FEATURES else "Sandybridge"


def report() -> Iterator[str]:
    """Lines for `tensorken doctor`."""
    import numpy as np

    kernel_names = kernels()
    yield f"numpy {np.__version__}, " + (
        f"OpenBLAS with kernels for {kernel_names}" if kernel_names else "a BLAS other than its OpenBLAS"
    )
    if kernel_names in faulty_kernels():
        number = ".".join(map(str, version()))
        yield (
            f"OpenBLAS {number} with kernels for {kernel_names} ends the process now and then on this processor, "
            f"as it overruns its stack: set {VARIABLE}={safe_kernels()} before Python starts"
        )
    elif (
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
