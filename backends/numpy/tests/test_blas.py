"""The report of `tensorken doctor` on numpy's BLAS."""

from __future__ import annotations

import platform

from tensorken_numpy import blas


def test_the_kernels_have_a_name_or_are_unknown():
    found = blas.kernels()
    assert found is None or found.isalnum()


def test_kernels_for_an_older_processor_are_reported(monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.setattr(blas, "kernels", lambda: "Haswell")
    monkeypatch.setattr(blas, "processor_features", lambda: blas.AVX512_FEATURES | {"fma"})
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    first, second = blas.report()
    assert "kernels for Haswell" in first
    assert "because OPENBLAS_CORETYPE is Haswell: set OPENBLAS_CORETYPE=SkylakeX" in second
    monkeypatch.delenv("OPENBLAS_CORETYPE")
    assert "as it does not know this processor" in list(blas.report())[1]
    monkeypatch.setattr(blas, "kernels", lambda: "SkylakeX")
    assert len(list(blas.report())) == 1
    monkeypatch.setattr(blas, "kernels", lambda: "Haswell")
    monkeypatch.setattr(blas, "processor_features", lambda: {"avx2", "fma"})
    assert len(list(blas.report())) == 1
    monkeypatch.setattr(blas, "kernels", lambda: None)
    assert "a BLAS other than its OpenBLAS" in next(iter(blas.report()))
