"""What the doctor says of numpy's BLAS."""

from __future__ import annotations

import platform

from tensorken_numpy import blas


def test_the_kernels_have_a_name_or_are_unknown():
    found = blas.kernels()
    assert found is None or found.isalnum()


def test_a_processor_taken_for_an_older_one_is_told(monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.setattr(blas, "kernels", lambda: "Haswell")
    monkeypatch.setattr(blas, "abilities", lambda: blas.NEEDED | {"fma"})
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    first, second = blas.report()
    assert "kernels for Haswell" in first
    assert "because OPENBLAS_CORETYPE is Haswell: with OPENBLAS_CORETYPE=SkylakeX" in second
    monkeypatch.delenv("OPENBLAS_CORETYPE")
    assert "as it does not know this processor" in list(blas.report())[1]
    monkeypatch.setattr(blas, "kernels", lambda: "SkylakeX")
    assert len(list(blas.report())) == 1
    monkeypatch.setattr(blas, "kernels", lambda: "Haswell")
    monkeypatch.setattr(blas, "abilities", lambda: {"avx2", "fma"})
    assert len(list(blas.report())) == 1
    monkeypatch.setattr(blas, "kernels", lambda: None)
    assert "a BLAS of its own" in next(iter(blas.report()))
