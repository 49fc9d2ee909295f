"""Environment variables that libraries read when they are imported: one thread each, and the BLAS kernels."""

from __future__ import annotations

import os
from pathlib import Path

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
AVX_512 = {"avx512f", "avx512dq", "avx512bw", "avx512vl"}
PROCESSORS = Path("/proc/cpuinfo")


def configure() -> None:
    """Set the environment variables; existing settings of OpenBLAS are removed."""
    for name in [name for name in os.environ if name.startswith("OPENBLAS_")]:
        del os.environ[name]
    os.environ |= dict.fromkeys(ONE_THREAD, "1")
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    if PROCESSORS.exists() and set(PROCESSORS.read_text("ascii", "replace").split()) >= AVX_512:
        os.environ["OPENBLAS_CORETYPE"] = (
            "SkylakeX"  # as `tensorken doctor` recommends if it is not the default
        )
