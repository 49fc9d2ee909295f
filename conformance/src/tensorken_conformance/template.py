"""Template: write the project of a new backend, which is complete and conforms already."""

from __future__ import annotations

import keyword
import re
from importlib import resources, util
from importlib.resources.abc import Traversable
from pathlib import Path

PACKAGE = "package"
"""The folder of a project that becomes the package of the new backend."""

STARTS = {"python": ("project",), "array-api": ("project", "project_array_api")}
"""The folders of the files of each start; files of a later folder replace those of an earlier one.

`python` needs no library; `array-api` calls one that implements the array API standard.
"""


def create(name: str, folder: Path | None = None, start: str = "python") -> list[Path]:
    """Write a project for a backend of this name.

    Args:
        name: the name of the backend; lower-case letters, digits, hyphens and underscores.
        folder: the folder of the project; by default `tensorken-NAME` in the current one.
        start: one of STARTS.

    Returns:
        The written files.

    Raises:
        ValueError: if the name is invalid, or that of an installed package; or if there is no such start.
        FileExistsError: if the folder is not empty; then nothing is written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     sorted(path.name for path in create("abacus", Path(place)) if path.suffix == ".py")
    ['__init__.py', 'backend.py', 'plugin.py', 'test_conformance.py']
    """
    word = name.replace("-", "_")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", word) or keyword.iskeyword(word):
        raise ValueError(
            f"new: {name!r} cannot be the name of a backend; take lower-case letters, digits, - and _, such as 'abacus'"
        )
    if util.find_spec(f"tensorken_{word}") or word == "core":
        raise ValueError(
            f"new: there is a tensorken-{name} already, which yours would replace; take another name"
        )
    if start not in STARTS:
        raise ValueError(f"new: cannot start from {start!r}; start from {' or '.join(STARTS)}")
    target = Path(f"tensorken-{name}") if folder is None else folder
    if target.exists() and any(target.iterdir()):
        raise FileExistsError(f"new: {target} is not empty; name another folder")
    written = []
    files: dict[tuple[str, ...], str] = {}
    for source in STARTS[start]:
        files.update(_files(resources.files(__package__).joinpath(source)))
    for path, text in files.items():
        place = target.joinpath(*[f"tensorken_{word}" if part == "tensorken_mine" else part for part in path])
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(_renamed(text, name, word), encoding="utf-8")
        written.append(place)
    return written


def _renamed(text: str, name: str, word: str) -> str:
    """The text with the new name in place of `mine`, in each spelling."""
    title = "".join(part.capitalize() for part in word.split("_"))
    ways = {"tensorken_mine": f"tensorken_{word}", "Mine": title, "mine": name}
    return re.sub(r"tensorken_mine|\bMine\b|\bmine\b", lambda found: ways[found[0]], text)


def _files(folder: Traversable, above: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], str]]:
    """The texts of the template's files, with the paths of the new files."""
    found: list[tuple[tuple[str, ...], str]] = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        place = ("src", "tensorken_mine") if entry.name == PACKAGE else (entry.name,)
        if entry.is_dir():
            if entry.name != "__pycache__":
                found += _files(entry, (*above, *place))
        elif not entry.name.endswith(".pyc"):
            found.append(((*above, *place), entry.read_text(encoding="utf-8")))
    return found
