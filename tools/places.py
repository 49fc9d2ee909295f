"""Run tests in a copy of the workspace installed in an unusual place: `python -m tools.places [PLACE [ARGUMENTS]]`.

A place determines the installer, whether the path has a space, and whether it is writable. In the copy, nox creates
the environment of the session `tests`, and pytest runs in it with the arguments. For an unwritable place, root runs the
tests as the user nobody; other users remove their own write permission. `any` changes daily, unless the environment
variable TEST_PLACE names a place. Without arguments, all places are listed.
"""

from __future__ import annotations

import datetime
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tools.readme import copy_workspace

VARIABLE = "TEST_PLACE"

PLACES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "virtualenv": frozenset({"virtualenv"}),
        "uv": frozenset({"uv"}),
        "virtualenv,space,unwritable": frozenset({"virtualenv", "space", "unwritable"}),
        "uv,space,unwritable": frozenset({"uv", "space", "unwritable"}),
    }
)
"""The installer of each place, whether its path has a space, and whether it is unwritable."""


def possible() -> list[str]:
    """The places that this machine supports, depending on uv and file permissions."""
    python = Path(sys.executable).resolve()
    unreadable = [folder for folder in python.parents if not folder.stat().st_mode & 0o001]
    unsupported = {"unwritable"} if sys.platform == "win32" or (os.geteuid() == 0 and unreadable) else set()
    if not shutil.which("uv") and importlib.util.find_spec("uv") is None:
        unsupported.add("uv")
    return [name for name, properties in PLACES.items() if not properties & unsupported]


def choose(name: str) -> str:
    """The place of this name; `any` changes daily.

    Raises:
        ValueError: if this machine does not support the place.
    """
    places = possible()
    name = os.environ.get(VARIABLE) or name
    if name == "any":
        return places[datetime.datetime.now(datetime.UTC).date().toordinal() % len(places)]
    if name not in places:
        raise ValueError(f"{name}: not a place of this machine, which supports {'; '.join(places)}")
    return name


def remove_write_permission(workspace: Path, home: Path) -> dict[str, Any]:
    """Make the workspace unwritable; returns the keyword arguments of `subprocess.run` for its user."""
    if os.geteuid() == 0:  # root ignores permissions
        import pwd

        nobody = pwd.getpwnam("nobody")
        os.chown(home, nobody.pw_uid, nobody.pw_gid)
        return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    for path in [workspace, *workspace.rglob("*")]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o222)
    return {}


def run(place: str, arguments: list[str]) -> int:
    """Run pytest with these arguments in a place; returns the exit status."""
    properties = PLACES[place]
    with tempfile.TemporaryDirectory(prefix="tensorken-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        home, workspace = Path(folder, "home"), Path(folder, "a copy" if "space" in properties else "copy")
        home.mkdir()
        copy_workspace(workspace)
        session = f"tests-{sys.version_info.major}.{sys.version_info.minor}"
        nox = [sys.executable, "-m", "nox", "--noxfile", str(workspace / "noxfile.py"), "--session", session]
        installer = "uv" if "uv" in properties else "virtualenv"
        subprocess.run([*nox, "--install-only", "--force-venv-backend", installer], check=True)
        (environment,) = workspace.glob(".nox/tests-*")
        python = environment.joinpath(
            *(("Scripts", "python.exe") if sys.platform == "win32" else ("bin", "python"))
        )
        user = remove_write_permission(workspace, home) if "unwritable" in properties else {}
        print(f"place: {place}: {workspace}", flush=True)
        settings = {**os.environ, "HOME": str(home), "USERPROFILE": str(home), VARIABLE: place}
        command = [str(python), "-m", "pytest", *arguments]
        try:
            return subprocess.run(command, cwd=workspace, env=settings, check=False, **user).returncode
        except PermissionError:
            raise SystemExit(
                f"tools.places: other users may not run {python.resolve()}; use another Python"
            ) from None


def main(arguments: list[str]) -> int:
    """Run the command; returns the exit status."""
    if not arguments:
        print(*possible(), sep="\n")
        return 0
    try:
        place = choose(arguments[0])
    except ValueError as error:
        print(f"tools.places: {error}", file=sys.stderr)
        return 2
    return run(place, arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
