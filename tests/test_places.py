"""The places where the tests run: listing, selection and errors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import places
from tools.workspace import ROOT


def test_every_installer_and_kind_of_place_is_listed() -> None:
    """On a machine that supports all of them."""
    assert {fact for facts in places.PLACES.values() for fact in facts} == {
        "virtualenv",
        "uv",
        "space",
        "unwritable",
    }
    assert all(len(facts & {"virtualenv", "uv"}) == 1 for facts in places.PLACES.values())


def test_the_place_changes_daily_and_the_variable_overrides_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(places.VARIABLE, raising=False)
    assert places.choose("any") in places.possible()
    assert places.choose("virtualenv") == "virtualenv"
    monkeypatch.setenv(places.VARIABLE, "virtualenv")
    assert places.choose("any") == "virtualenv"


def test_an_unsupported_place_is_refused_in_a_line() -> None:
    environment = {name: value for name, value in os.environ.items() if name != places.VARIABLE}
    command = [sys.executable, "-m", "tools.places", "elsewhere"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith(
        "tools.places: elsewhere: not a place of this machine, which supports virtualenv"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no such permissions there")
def test_write_permission_is_removed(tmp_path: Path) -> None:
    workspace, home = tmp_path / "workspace", tmp_path / "home"
    (workspace / "folder").mkdir(parents=True)
    home.mkdir()
    (workspace / "folder" / "file").write_text("", encoding="utf-8")
    for folder in (tmp_path, *tmp_path.parents):
        if not folder.stat().st_mode & 0o001 and os.geteuid() == 0:
            folder.chmod(
                folder.stat().st_mode | 0o011
            )  # folders of pytest that the user nobody may not enter
    user = places.remove_write_permission(workspace, home)
    for path, may in (
        (workspace / "folder" / "new", False),
        (workspace / "folder" / "file", False),
        (home / "new", True),
    ):
        done = subprocess.run(
            ["sh", "-c", 'echo >> "$0"', str(path)], check=False, stderr=subprocess.DEVNULL, **user
        )
        assert (done.returncode == 0) == may, path
    for path in (workspace, workspace / "folder"):
        path.chmod(0o755)
