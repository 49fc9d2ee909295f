"""The report of `tensorken doctor` on numpy's BLAS."""

from __future__ import annotations

import platform

from tensorken_numpy import blas


def test_the_kernels_have_a_name_or_are_unknown():
    found = blas.kernels()
    assert found is None or found.isalnum()


def test_kernels_that_overrun_their_stack_are_reported(monkeypatch):
    monkeypatch.setattr(blas, "kernels", lambda: "Haswell")
    monkeypatch.setattr(blas, "is_zen_4_or_5", lambda: True)
    monkeypatch.setattr(blas, "processor_features", lambda: blas.AVX512_FEATURES)
    for version, count in (((0, 3, 34), 1), ((0, 3, 35), 1), ((0, 3, 31), 0), ((), 0)):
        monkeypatch.setattr(blas, "version", lambda version=version: version)
        found = [line for line in blas.report() if "overruns its stack" in line]
        assert len(found) == count
    monkeypatch.setattr(blas, "version", lambda: (0, 3, 34))
    (line,) = [line for line in blas.report() if "OPENBLAS_CORETYPE" in line]
    assert "OpenBLAS 0.3.34 with kernels for Haswell" in line
    assert line.endswith("set OPENBLAS_CORETYPE=SkylakeX before Python starts")
    monkeypatch.setattr(blas, "processor_features", lambda: {"avx2"})
    assert blas.safe_kernels() == "Sandybridge"
    monkeypatch.setattr(blas, "kernels", lambda: "SkylakeX")
    assert len(list(blas.report())) == 1
    monkeypatch.setattr(blas, "kernels", lambda: "Haswell")
    monkeypatch.setattr(blas, "is_zen_4_or_5", lambda: False)
    assert len(list(blas.report())) == 1


def test_processors_are_told_apart():
    amd = "AuthenticAMD"
    for vendor, family, model, expected in (
        (amd, 25, 0x11, True),
        (amd, 25, 0x61, True),
        (amd, 25, 0x74, True),
        (amd, 25, 0xA0, True),
        (amd, 26, 0x02, True),
        (amd, 25, 0x01, False),
        (amd, 25, 0x21, False),
        (amd, 25, 0x50, False),
        (amd, 23, 0x31, False),
        ("GenuineIntel", 6, 0x55, False),
        ("GenuineIntel", 26, 0x11, False),
    ):
        facts = {"vendor_id": vendor, "cpu family": str(family), "model": str(model)}
        assert blas.is_zen_4_or_5(facts, "x86_64") is expected
        text = f"AMD64 Family {family} Model {model} Stepping 1, {vendor}"
        assert blas.is_zen_4_or_5({}, text) is expected
    assert not blas.is_zen_4_or_5({}, "")
    assert not blas.is_zen_4_or_5({"vendor_id": amd}, "x86_64")


def test_the_version_is_that_of_the_library():
    found = blas.version()
    assert found == () if blas.kernels() is None else found > (0, 3)


def test_kernels_for_an_older_processor_are_reported(monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.setattr(blas, "kernels", lambda: "Haswell")
    monkeypatch.setattr(blas, "faulty_kernels", frozenset)
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
