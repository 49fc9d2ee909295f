"""The resident memory of a process on each operating system; fakes replace the other systems."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tensorken_conformance.laws.lifetime import growth

MIB = 2**20


def without_proc(monkeypatch: pytest.MonkeyPatch, platform: str) -> None:
    def missing(path: Path, *args: Any, **kwargs: Any) -> str:
        raise FileNotFoundError(path)

    monkeypatch.setattr(growth.Path, "read_text", missing)
    monkeypatch.setattr(growth.sys, "platform", platform)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc/self/statm")
def test_resident_memory_falls_after_release_on_linux() -> None:
    before = growth.resident()
    block = bytearray(b"x") * (64 * MIB)
    grown = growth.resident() - before
    assert 48 * MIB < grown < 80 * MIB, (grown, len(block))
    del block
    assert growth.resident() - before < 16 * MIB


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no os.sysconf")
def test_statm_is_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth.Path, "read_text", lambda path, encoding: "9000 512 300 1 0 400 0\n")
    monkeypatch.setattr(growth.os, "sysconf", {"SC_PAGE_SIZE": 16384}.__getitem__)
    assert growth.resident() == 512 * 16384


@pytest.mark.parametrize(("platform", "unit"), [("darwin", 1), ("linux", 1024), ("freebsd14", 1024)])
def test_getrusage_is_in_bytes_on_macos_and_kibibytes_elsewhere(
    monkeypatch: pytest.MonkeyPatch, platform: str, unit: int
) -> None:
    without_proc(monkeypatch, platform)
    arguments: list[Any] = []

    def getrusage(who: Any) -> Any:
        arguments.append(who)
        return SimpleNamespace(ru_maxrss=123_456)

    fake = SimpleNamespace(RUSAGE_SELF="self", getrusage=getrusage)
    monkeypatch.setitem(sys.modules, "resource", fake)  # type: ignore[arg-type]
    assert growth.resident() == 123_456 * unit
    assert arguments == ["self"]


class Psapi:
    """A fake of psapi.dll, which writes the counters of `PROCESS_MEMORY_COUNTERS`."""

    def __init__(self, works: bool = True) -> None:
        self.works = works

    def GetProcessMemoryInfo(self, process: Any, counters: Any, size: int) -> int:  # noqa: N802, the name in psapi.h
        assert process.value == ctypes.c_void_p(-1).value  # the result of GetCurrentProcess
        word = ctypes.sizeof(ctypes.c_size_t)
        assert size == 2 * 4 + 8 * word  # two DWORDs, eight SIZE_Ts
        if not self.works:
            return 0
        memory = ctypes.cast(counters, ctypes.POINTER(ctypes.c_char * size)).contents
        assert int.from_bytes(memory.raw[:4], sys.byteorder) == size  # cb, which the caller sets
        for number in range(8):
            start = 8 + number * word
            memory[start : start + word] = ((number + 1) * MIB).to_bytes(word, sys.byteorder)  # type: ignore[assignment]
        return 1


def test_windows_reports_the_working_set(monkeypatch: pytest.MonkeyPatch) -> None:
    without_proc(monkeypatch, "win32")
    monkeypatch.setattr(growth.ctypes, "windll", SimpleNamespace(psapi=Psapi()), raising=False)
    assert growth.resident() == 2 * MIB  # the second: WorkingSetSize, after PeakWorkingSetSize


def test_an_error_of_windows_raises_oserror(monkeypatch: pytest.MonkeyPatch) -> None:
    without_proc(monkeypatch, "win32")
    monkeypatch.setattr(growth.ctypes, "windll", SimpleNamespace(psapi=Psapi(works=False)), raising=False)
    with pytest.raises(OSError, match="GetProcessMemoryInfo"):
        growth.resident()


def test_tuples_of_numbers_are_not_counted() -> None:
    before = growth.Footprint.now()
    tuples = [((((float(i),),),),) for i in range(1000)]
    assert growth.Footprint.now().objects - before.objects < 100, len(tuples)
