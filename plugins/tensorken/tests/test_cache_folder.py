"""The folder of the user's caches."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tensorken.cache_folder import cache_folder


def test_the_folder_is_the_platforms(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for platform, variable in (("linux", "XDG_CACHE_HOME"), ("win32", "LOCALAPPDATA")):
        monkeypatch.setattr(sys, "platform", platform)
        monkeypatch.setenv(variable, str(tmp_path / platform))
        assert cache_folder() == tmp_path / platform / "tensorken"
    monkeypatch.setenv("LOCALAPPDATA", "relative")
    assert cache_folder() == Path.home() / ".cache" / "tensorken"


def test_there_may_be_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Path:
        raise RuntimeError

    monkeypatch.setattr(Path, "home", fail)
    monkeypatch.delenv("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME", raising=False)
    assert cache_folder() is None
