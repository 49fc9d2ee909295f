"""How much memory a process has, as each system tells it: the systems are played by fakes."""

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
    def missing(path: Path, *given: Any, **named: Any) -> str:
        raise FileNotFoundError(path)

    monkeypatch.setattr(growth.Path, "read_text", missing)
    monkeypatch.setattr(growth.sys, "platform", platform)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc/self/statm")
def test_linux_tells_what_is_in_memory_now() -> None:
    before = growth.resident()
    held = bytearray(b"x") * (64 * MIB)
    grown = growth.resident() - before
    assert 48 * MIB < grown < 80 * MIB, (grown, len(held))
    del held
    assert growth.resident() - before < 16 * MIB


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pages of sysconf on Windows")
def test_proc_counts_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth.Path, "read_text", lambda path, encoding: "9000 512 300 1 0 400 0\n")
    monkeypatch.setattr(growth.os, "sysconf", {"SC_PAGE_SIZE": 16384}.__getitem__)
    assert growth.resident() == 512 * 16384


@pytest.mark.parametrize(("platform", "unit"), [("darwin", 1), ("linux", 1024), ("freebsd14", 1024)])
def test_getrusage_counts_bytes_on_macos_and_kibibytes_elsewhere(
    monkeypatch: pytest.MonkeyPatch, platform: str, unit: int
) -> None:
    without_proc(monkeypatch, platform)
    asked: list[Any] = []

    def getrusage(who: Any) -> Any:
        asked.append(who)
        return SimpleNamespace(ru_maxrss=123_456)

    fake = SimpleNamespace(RUSAGE_SELF="self", getrusage=getrusage)
    monkeypatch.setitem(sys.modules, "resource", fake)  # type: ignore[arg-type]
    assert growth.resident() == 123_456 * unit
    assert asked == ["self"]


class Psapi:
    """The library of Windows, which writes its counters where it is told to, as psapi.h lays them out."""

    def __init__(self, works: bool = True) -> None:
        self.works = works

    def GetProcessMemoryInfo(self, process: Any, place: Any, size: int) -> int:  # noqa: N802, its name
        assert process.value == ctypes.c_void_p(-1).value  # what GetCurrentProcess gives
        word = ctypes.sizeof(ctypes.c_size_t)
        assert size == 2 * 4 + 8 * word  # two DWORDs, eight SIZE_Ts
        if not self.works:
            return 0
        memory = ctypes.cast(place, ctypes.POINTER(ctypes.c_char * size)).contents
        assert int.from_bytes(memory.raw[:4], sys.byteorder) == size  # cb, which the caller sets
        for number in range(8):
            start = 8 + number * word
            memory[start : start + word] = ((number + 1) * MIB).to_bytes(word, sys.byteorder)  # type: ignore[assignment]
        return 1


def test_windows_counts_the_working_set(monkeypatch: pytest.MonkeyPatch) -> None:
    without_proc(monkeypatch, "win32")
    monkeypatch.setattr(growth.ctypes, "windll", SimpleNamespace(psapi=Psapi()), raising=False)
    assert growth.resident() == 2 * MIB  # the second: WorkingSetSize, after PeakWorkingSetSize


def test_windows_may_refuse_which_is_no_memory_of_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    without_proc(monkeypatch, "win32")
    monkeypatch.setattr(growth.ctypes, "windll", SimpleNamespace(psapi=Psapi(works=False)), raising=False)
    with pytest.raises(OSError, match="GetProcessMemoryInfo"):
        growth.resident()


def test_what_holds_nothing_but_numbers_is_not_counted() -> None:
    before = growth.Footprint.now()
    kept = [((((float(i),),),),) for i in range(1000)]
    assert growth.Footprint.now().objects - before.objects < 100, len(kept)
