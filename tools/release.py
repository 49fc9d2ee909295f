"""Build, check and try a release: `nox -s release -- --dry-run`.

The workflow `release.yml` does the same when a tag is pushed, and then publishes the files.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from tools import changelog, repository
from tools.pages import blocks
from tools.workspace import ROOT, distributions, version


class ReleaseError(Exception):
    """What is wrong with a release, in one line, perhaps with the output of a command."""


def build(folder: Path) -> list[Path]:
    """Build the sdists of all distributions into a folder, and a wheel from each sdist alone; returns the files.

    Raises:
        ReleaseError: if the files are not those of a second build, directly from the sources.
    """
    with tempfile.TemporaryDirectory(prefix="tensorken-release-") as name:
        unpacked, again = Path(name, "unpacked"), Path(name, "again")
        for source in distributions(optional=True):
            _build("sdist", source, folder)
            _build("sdist", source, again)
            _build("wheel", source, again)
        for sdist in sorted(folder.glob("*.tar.gz")):
            with tarfile.open(sdist) as archive:
                archive.extractall(unpacked, filter="data")
            _build("wheel", unpacked / sdist.name.removesuffix(".tar.gz"), folder)
        files = sorted([*folder.glob("*.tar.gz"), *folder.glob("*.whl")])
        if sorted(file.name for file in again.iterdir()) != sorted(file.name for file in files):
            raise ReleaseError(f"{folder} has files of another build; build into an empty folder")
        for file in files:
            if file.read_bytes() != (again / file.name).read_bytes():
                raise ReleaseError(
                    f"{file.name} differs between two builds, or needs files outside of its sdist"
                )
    return files


def check_tag(tag: str) -> None:
    """Check that a tag is that of the version, and that the changelog's first section, and nothing after it, is its.

    Raises:
        ReleaseError: if not.
    """
    if tag != f"v{version()}":
        raise ReleaseError(f"the tag is {tag}, and VERSION says {version()}; tag v{version()}")
    first = re.search(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    if first is None or not re.fullmatch(rf"{re.escape(version())} \(\d{{4}}-\d\d-\d\d\)", first[1]):
        raise ReleaseError(
            f"the first section of CHANGELOG.md is {first and first[1]!r}; run "
            f"'python run.py changelog --release', which writes '{version()} (YYYY-MM-DD)'"
        )
    if left := changelog.fragments():
        raise ReleaseError(
            f"{len(left)} changes are in changelog.d/ and not in CHANGELOG.md, such as {left[0].name}; run "
            f"'python run.py changelog --release'"
        )


def check_addresses() -> None:
    """Check that the addresses of the project are known.

    Raises:
        ReleaseError: if not.
    """
    known = repository.addresses()
    missing = [setting for setting in ("repository", "documentation") if setting.capitalize() not in known]
    if missing:
        raise ReleaseError(
            f"{' and '.join(missing)}: no address in [tool.tensorken] of pyproject.toml; set it there, "
            f"and run 'python -m tools.repository'"
        )


def index(folder: Path) -> Path:
    """Make an index of the files in a folder, by the simple repository API; returns its folder."""
    root = folder / "simple"
    for file in [*folder.glob("*.whl"), *folder.glob("*.tar.gz")]:
        project = root / re.sub(r"[-_.]+", "-", file.name.split(f"-{version()}")[0]).lower()
        project.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        with (project / "index.html").open("a", encoding="utf-8") as page:
            page.write(f'<a href="{file.resolve().as_uri()}#sha256={digest}">{file.name}</a>\n')
    return root


def example() -> tuple[str, str]:
    """The first program of the README, and its output."""
    page = blocks((ROOT / "README.md").read_text(encoding="utf-8"))
    number = next(i for i, block in enumerate(page) if block.language == "python")
    return page[number].text, page[number + 1].text


class Environment:
    """An empty environment of an interpreter, with the index beside pip's own.

    Args:
        folder: where it is made.
        python: the interpreter.
        packages: the folder of the index.
    """

    def __init__(self, folder: Path, python: str, packages: Path) -> None:
        self.folder = folder
        self.packages = packages
        self.scripts = folder / ("Scripts" if sys.platform == "win32" else "bin")
        _run([python, "-m", "venv", str(folder)])

    def run(self, program: str, *arguments: str, folder: Path | None = None) -> str:
        """Run a program of the environment in a folder, by default the environment's; returns its output.

        Raises:
            ReleaseError: if it fails.
        """
        return _run([str(self.scripts / program), *arguments], folder or self.folder)

    def install(self, *requirements: str, folder: Path | None = None) -> None:
        """Install from the index, and what it lacks from pip's own."""
        options = ["--disable-pip-version-check", "--quiet", "--extra-index-url", self.packages.as_uri()]
        self.run("python", "-m", "pip", "install", *options, *requirements, folder=folder)

    def size(self) -> int:
        """The bytes of all installed packages but pip."""
        names = ("pip", "setuptools")
        roots = [root for root in self.folder.rglob("site-packages") for root in root.iterdir()]
        kept = [root for root in roots if not root.name.startswith(names)]
        return sum(
            file.stat().st_size for root in kept for file in (root, *root.rglob("*")) if file.is_file()
        )


@contextmanager
def timed(what: str) -> Iterator[list[str]]:
    """Print a line with the time of a block, and its results, which it appends to the list."""
    results: list[str] = []
    began, used = time.monotonic(), _children()
    yield results
    times = f"{time.monotonic() - began:.1f} s, {_children() - used:.1f} s of CPU"
    print(f"{what}: {', '.join([times, *results])}", flush=True)


def try_it(python: str, packages: Path) -> None:
    """Install into empty environments, run the README's example, and certify a new backend; prints what each step took.

    Raises:
        ReleaseError: if a command fails, the example prints something else, or the backend gets no level.
    """
    program, output = example()
    with tempfile.TemporaryDirectory(prefix="tensorken-release-", ignore_cleanup_errors=True) as name:
        environment = Environment(Path(name, "user"), python, packages)
        with timed(f"{python}: pip install tensorken") as results:
            environment.install("tensorken")
            results.append(f"{environment.size() / 1e6:.0f} MB installed")
        with timed(f"{python}: the README's example"):
            if (printed := environment.run("python", "-c", program)) != output:
                raise ReleaseError(f"the README's example printed {printed!r} instead of {output!r}")
        with timed(f"{python}: from an empty environment to a certified backend") as results:
            environment = Environment(Path(name, "author"), python, packages)
            with timed(f"{python}: pip install tensorken[conformance]") as sizes:
                environment.install("tensorken[conformance]")
                sizes.append(f"{environment.size() / 1e6:.0f} MB installed")
            with timed(f"{python}: tensorken new backend mine, pip install ./tensorken-mine"):
                environment.run("tensorken", "new", "backend", "mine")
                environment.install("--editable", "./tensorken-mine")
            with timed(f"{python}: tensorken conformance run mine --smoke") as levels:
                run = (
                    "conformance",
                    "run",
                    "mine",
                    "--smoke",
                    "--budget",
                    "0",
                    "--brief",
                    "--badge",
                    "badge.json",
                )
                environment.run("tensorken", *run)
                badge = (environment.folder / "badge.json").read_text(encoding="utf-8")
                if not (level := re.search(r"\bL[1-5]", badge)):
                    raise ReleaseError(f"the kit gives a new project no level: {badge}")
                levels.append(level[0])
            results.append(level[0])


def try_managers(python: str, packages: Path) -> None:
    """Run the README's example in a project of uv, and the command by pipx, where they are installed.

    Raises:
        ReleaseError: if a command fails, or prints something else.
    """
    program, output = example()
    index, first = packages.as_uri(), f"tensorken {version()}, tensorken-core {version()}"
    with tempfile.TemporaryDirectory(prefix="tensorken-release-", ignore_cleanup_errors=True) as name:
        folder, uv, pipx = Path(name), [sys.executable, "-m", "uv"], [sys.executable, "-m", "pipx"]
        python_path = shutil.which(python) or python
        # a cache would have files of another build, with the same version
        settings = {"UV_NO_CACHE": "1", "PIPX_HOME": str(folder / "pipx"), "PIPX_DEFAULT_PYTHON": python_path}
        if find_spec("uv"):
            project = folder / "project"
            _run([*uv, "init", "--bare", "--python", python, str(project)], folder, settings)
            _run([*uv, "add", "--python", python, "--index", index, "tensorken"], project, settings)
            printed = _run([*uv, "run", "python", "-c", program], project, settings)
            printed += _run([*uv, "run", "tensorken", "--version"], project, settings)
            if not printed.startswith(output + first):
                raise ReleaseError(f"uv run printed {printed!r} instead of {output + first!r}")
        if find_spec("pipx"):
            options = ["--no-cache", f"--pip-args=--extra-index-url={index}"]
            printed = _run([*pipx, "run", *options, "tensorken", "--version"], folder, settings)
            if not printed.startswith(first):
                raise ReleaseError(f"pipx run printed {printed!r} instead of {first!r}")
    for manager in ("uv", "pipx"):
        state = "the example and the command ran" if find_spec(manager) else "not installed, so not tried"
        print(f"{python}: {manager}: {state}", flush=True)


def test_sources(python: str, packages: Path, folder: Path) -> None:
    """Install the sdists of `tensorken[all]`, and run the examples in the docstrings of each.

    Raises:
        ReleaseError: if one cannot be built, or an example fails.
    """
    with tempfile.TemporaryDirectory(prefix="tensorken-release-", ignore_cleanup_errors=True) as name:
        environment = Environment(Path(name, "sources"), python, packages)
        environment.install("tensorken[all]", "pytest", "hatchling")
        listed = json.loads(environment.run("python", "-m", "pip", "list", "--format", "json"))
        installed = {row["name"].replace("-", "_") for row in listed}
        for sdist in sorted(folder.glob("*.tar.gz")):
            distribution = sdist.name.split(f"-{version()}")[0]
            if distribution not in installed:
                print(f"{sdist.name}: not in tensorken[all], so its examples were not run", flush=True)
                continue
            with tarfile.open(sdist) as archive:
                parts = [Path(member).parts for member in archive.getnames()]
            found = sorted({part[2] for part in parts if len(part) > 2 and part[1] == "src"})
            options = ["--quiet", "--no-deps", "--no-build-isolation", "--force-reinstall"]
            environment.run("python", "-m", "pip", "install", *options, str(sdist.resolve()))
            examples = ["-q", "--doctest-modules", "-o", "python_files=", "--ignore-glob=*/templates/*"]
            tests = environment.run("python", "-m", "pytest", *examples, "--pyargs", *found)
            print(f"{sdist.name}: built; its examples: {tests.splitlines()[-1]}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Build and check; with `--dry-run` try the files, too, on each Python that is named, or on the running one."""
    parser = argparse.ArgumentParser(
        prog="nox -s release --", description=__doc__.split("\n")[0].split(":")[0]
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="install the files into empty environments, too"
    )
    parser.add_argument("--tag", help="check that this is the tag of the version in VERSION and CHANGELOG.md")
    parser.add_argument("--only-try", action="store_true", help="build nothing; try the files in the folder")
    parser.add_argument("--python", action="append", help="an interpreter to try; may be repeated")
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "release", help="for the files")
    options = parser.parse_args(arguments)
    try:
        if options.tag:
            check_tag(options.tag)
            check_addresses()
        if not options.only_try:
            shutil.rmtree(options.folder, ignore_errors=True)
            files = build(options.folder)
            _run([sys.executable, "-m", "twine", "check", "--strict", *map(str, files)])
            print(
                f"{len(files)} files in {options.folder}: the same in two builds, and checked by twine",
                flush=True,
            )
        if options.dry_run or options.only_try:
            packages = index(options.folder)
            pythons = options.python or [sys.executable]
            for python in pythons:
                try_it(python, packages)
                try_managers(python, packages)
            test_sources(pythons[0], packages, options.folder)
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


def _build(form: str, source: Path, folder: Path) -> None:
    _run([sys.executable, "-m", "build", "--no-isolation", f"--{form}", "--outdir", str(folder), str(source)])


def _run(
    command: Sequence[str], folder: Path | None = None, settings: Mapping[str, str] | None = None
) -> str:
    left_out = ("TENSORKEN_", "VIRTUAL_ENV", "UV_PYTHON", "UV_PROJECT")  # nox names its environment to uv
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**kept, **(settings or {})},
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise ReleaseError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def _children() -> float:
    """The CPU time of all processes that have ended, in seconds."""
    times = os.times()
    return times.children_user + times.children_system


if __name__ == "__main__":
    sys.exit(main())
