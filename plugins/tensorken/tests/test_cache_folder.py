"""The folder of the user's caches."""

from __future__ import annotations

import contextlib
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from core.tests.each import each_of
from tensorken import cache_folder as folders
from tensorken.cache_folder import cache_folder, read_file, remove_abandoned, temporary_files, write_file

posix_only = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows keeps users apart by other means")


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


def _linked_folder(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(folder.with_name("elsewhere"))


def _linked_file(folder: Path) -> None:
    (folder / "a").rename(folder / "b")
    (folder / "a").symlink_to(folder / "b")


def _pipe(folder: Path) -> None:
    (folder / "a").unlink()
    os.mkfifo(folder / "a")


def _directory(folder: Path) -> None:
    (folder / "a").unlink()
    (folder / "a").mkdir()


def _file_for_folder(folder: Path) -> None:
    (folder / "a").unlink()
    folder.rmdir()
    folder.touch()


UNTRUSTED: dict[str, tuple[Callable[[Path], object], str]] = {
    "a folder that others may write": (lambda folder: folder.chmod(0o1777), "not used: it can be written by"),
    "a folder that the group may write": (
        lambda folder: folder.chmod(0o770),
        "not used: it can be written by",
    ),
    "a linked folder": (_linked_folder, "not used: it is a link"),
    "a file in the place of the folder": (_file_for_folder, "not used: it is no folder"),
    "a file that others may write": (
        lambda folder: (folder / "a").chmod(0o666),
        "ignored: it can be written",
    ),
    "a linked file": (_linked_file, "ignored: it is a link"),
    "a file with two names": (
        lambda folder: os.link(folder / "a", folder / "b"),
        "ignored: it has several hard",
    ),
    "a named pipe": (_pipe, "ignored: it is no file"),
    "a folder in the place of the file": (_directory, "ignored: it (is no file|cannot be read)"),
}
"""What makes a file untrusted, and the warning."""


@posix_only
@each_of("name", UNTRUSTED)
def test_files_that_others_could_have_written_are_ignored(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil, message = UNTRUSTED[name]
    folder = tmp_path / name / "cache"
    write_file(folder / "a", b"content")
    assert read_file(folder / "a") == b"content"
    assert folder.stat().st_mode & 0o777 == folder.parent.stat().st_mode & 0o777 == 0o700
    spoil(folder)
    monkeypatch.setattr(folders, "_told", set())
    with pytest.warns(RuntimeWarning, match=message):
        assert read_file(folder / "a") is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_file(folder / "a") is None  # told once
        with contextlib.suppress(OSError):
            write_file(folder / "a", b"other")
    if "not used" in message and folder.is_dir():
        assert (folder / "a").read_bytes() == b"content"


@posix_only
def test_files_of_other_users_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_file(tmp_path / "a", b"content")
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with pytest.warns(RuntimeWarning, match=f"belongs to user {user}, not to user {user + 1}"):
        assert read_file(tmp_path / "a") is None


def test_missing_files_are_no_fault(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert read_file(tmp_path / "a") is None
    assert read_file(tmp_path / "folder" / "a") is None
    assert read_file(tmp_path / "file" / "folder" / "a") is None


def test_files_of_killed_processes_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Path, target: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            write_file(tmp_path / "a", b"content")
    assert [*tmp_path.iterdir()] == []
    old, new = tmp_path / "a.o1.part", tmp_path / "a.o2.part"
    for file in (old, new):
        file.touch()
    os.utime(old, (time.time() - 1e5, time.time() - 1e5))
    assert {*temporary_files(tmp_path)} == {old, new}
    remove_abandoned(tmp_path)
    assert {*temporary_files(tmp_path)} == {new}
