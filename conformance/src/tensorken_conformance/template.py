"""Templates: write the project of a new backend, compiler, op or training task, which is complete and works already.

Each folder of `templates/` but `shared` is such a project, or the files in which one differs from another.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import resources, util
from importlib.metadata import entry_points
from importlib.resources.abc import Traversable
from pathlib import Path

from tensorken_core.host.discovery import normalized

REPORTS = "--json report.json --html report.html --badge report.svg"
ON_THE_OP = " ".join(
    [f"--select {group}/squared_distances" for group in ("derivatives", "errors", "lifetime")]
)


@dataclass(frozen=True, slots=True)
class Kind:
    """What a project can be.

    Attributes:
        summary: one line for listings.
        group: the entry points among which the name must be new.
        checks: the commands that test and certify the project; `mine` is the name of the project.
        starts: the folders of the files for each start; files of a later folder replace those of an earlier one.
    """

    summary: str
    group: str
    checks: tuple[str, ...]
    starts: dict[str, tuple[str, ...]] = field(default_factory=dict)


KINDS = {
    "backend": Kind(
        "a backend: every required op, in pure Python or by a library of the array API standard",
        "tensorken.backends",
        ("pytest", f"tensorken conformance run mine --smoke --budget 0 {REPORTS}"),
        {"python": ("backend",), "array-api": ("backend", "array-api")},
    ),
    "compiler": Kind(
        "a compiler plugin: programs of elementwise ops as one numpy function",
        "tensorken.plugins",
        ("pytest", f"tensorken conformance run numpy --smoke --budget 0 {REPORTS}"),
    ),
    "ops": Kind(
        "a plugin with an op, its derivatives and its batching rule",
        "tensorken.plugins",
        (
            "pytest",
            *[
                f"tensorken conformance run {backend} {ON_THE_OP} --json report-{backend}.json"
                for backend in ("numpy", "reference")
            ],
        ),
    ),
    "task": Kind(
        "a training task for `tensorken train`: its data, its network and its options",
        "tensorken.jobs",
        ("pytest", "tensorken train mine --epochs 5 --out report"),
    ),
}
"""The kinds of projects by name."""

OURS = frozenset("core numpy reference string wgpu jax torch nn llvm profile dask mpi conformance".split())
"""Names of the distributions and packages `tensorken-NAME` that are ours."""


def create(kind: str, name: str, folder: Path | None = None, start: str = "") -> list[Path]:
    """Write a project.

    Args:
        kind: one of KINDS.
        name: the name of the project; lower-case letters, digits, hyphens and underscores.
        folder: the folder of the project; by default `tensorken-NAME` in the current one.
        start: one of the starts of the kind; by default the first.

    Returns:
        The written files.

    Raises:
        ValueError: if the name is invalid or taken; or if there is no such kind or start.
        FileExistsError: if the folder is not empty; then nothing is written.
        OSError: if it cannot be written; then nothing remains.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     sorted(path.name for path in create("backend", "abacus", Path(place)) if path.suffix == ".py")
    ['__init__.py', 'backend.py', 'plugin.py', 'test_abacus.py']
    """
    if kind not in KINDS:
        raise ValueError(f"new: there is no kind {kind!r}; take {' or '.join(KINDS)}")
    starts = KINDS[kind].starts or {"": (kind,)}
    start = start or next(iter(starts))
    if start not in starts:
        raise ValueError(f"new: cannot start from {start!r}; start from {' or '.join(starts)}")
    check_name(kind, name)
    target = Path(f"tensorken-{name}") if folder is None else folder
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FileExistsError(f"new: {target} is not an empty folder; name another with --folder")
    files: dict[str, str] = {}
    for source in ("shared", *starts[start]):
        files.update(_files(resources.files(__package__).joinpath("templates", source)))
    written: list[Path] = []
    try:
        for path, text in files.items():
            place = target / _renamed(path, kind, name)
            place.parent.mkdir(parents=True, exist_ok=True)
            written.append(place)
            place.write_text(
                _renamed(_with_checks(text, KINDS[kind].checks, name), kind, name),
                encoding="utf-8",
                newline="\n",
            )
    except OSError as error:
        _remove(written, target)
        reason = error.strerror or type(error).__name__
        raise OSError(f"new: cannot write {target}: {reason}; name another folder with --folder") from error
    return written


def _remove(files: Sequence[Path], target: Path) -> None:
    """Remove the files of a project that could not be written, and the folders that are empty then."""
    for file in reversed(files):
        with suppress(OSError):
            file.unlink()
        for folder in file.parents:
            with suppress(OSError):
                folder.rmdir()
            if folder == target:
                break


def check_name(kind: str, name: str) -> None:
    """Check that a new project may have this name.

    Raises:
        ValueError: if it may not.
    """
    word = _word(name)
    if not re.fullmatch(r"[a-z][a-z0-9_]*", word) or keyword.iskeyword(word):
        raise ValueError(
            f"new: {name!r} cannot be the name of a project; take lower-case letters, digits, - and _, such as "
            "'mine'"
        )
    if word in OURS or util.find_spec(f"tensorken_{word}"):
        raise ValueError(
            f"new: there is a tensorken-{name} already, which yours would replace; take another name"
        )
    taken = {normalized(point.name) for point in entry_points(group=KINDS[kind].group)}
    if kind == "task" and util.find_spec("tensorken_nn"):
        from tensorken_nn.jobs.table import OWN

        taken.update(OWN)
    if normalized(name) in taken:
        raise ValueError(f"new: an installed distribution has a {name!r} already; take another name")


def _word(name: str) -> str:
    return name.replace("-", "_")


def _renamed(text: str, kind: str, name: str) -> str:
    """A text or path with the name in place of the template's, `my` and the kind, in each spelling.

    >>> _renamed("class Mybackend: ...  # tensorken_mybackend", "backend", "a-b")
    'class AB: ...  # tensorken_a_b'
    """
    word, own = _word(name), f"my{kind}"
    title = "".join(part.capitalize() for part in word.split("_"))
    ways = {f"_{own}": f"_{word}", own.capitalize(): title, own: name, "myproject": name}
    return re.sub("|".join(ways), lambda found: ways[found[0]], text)


def _with_checks(text: str, checks: tuple[str, ...], name: str) -> str:
    """The text with a line for each check in place of a line with the word CHECKS."""
    named = [check.replace(" mine ", f" {name} ") for check in checks]
    return re.sub(
        "^(.*)CHECKS$",
        lambda found: "\n".join([found[1] + check for check in named]),
        text,
        flags=re.MULTILINE,
    )


def _files(folder: Traversable, above: str = "") -> dict[str, str]:
    """The texts of the files in a folder of templates, by their paths there."""
    found: dict[str, str] = {}
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_file():
            found[above + entry.name] = entry.read_text(encoding="utf-8")
        elif not entry.name.endswith(("_cache", "__pycache__", ".egg-info")):  # those of a checkout
            found.update(_files(entry, f"{above}{entry.name}/"))
    return found
