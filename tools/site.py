"""Builds the documentation site: `nox -s docs`.

The pages are staged in one folder: those of docs/ and its notebooks, the workspace's own (CHANGELOG.md,
CONTRIBUTING.md), the examples as they run, and the reference.  Sphinx makes HTML of them; every warning of it is an
error.  At the end the site is looked over: all public names are in it, and nothing in it needs a network.
"""

from __future__ import annotations

import argparse
import operator
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import tensorken
from tools import notebook, reference, walkthrough
from tools.rooms import rooms
from tools.workspace import ROOT

ABOVE = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "README.md": "../README.md",  # beside the pages, as beside docs/: they include parts of it
}
"""The workspace's own pages, and their places in the site."""

EXAMPLES = ("tour", "autodiff_cookbook", "train", "vertex")

REPORTS = ROOT / "reports"
"""Where `nox -s conformance` leaves the reports of our own backends; the site has those that are there."""

_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"`tk\.([A-Za-z_][\w.]*)`")
_LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def stage(folder: Path) -> None:
    """Bring everything that Sphinx reads into one folder."""
    docs = ROOT / "docs"
    places = {page: page.relative_to(docs) for page in docs.rglob("*.md") if page.name != "template.md"}
    places |= {file: file.relative_to(docs).with_suffix(".md") for file in notebook.notebooks()}
    places |= {ROOT / name: Path(place) for name, place in ABOVE.items()}
    for source, place in places.items():
        text = notebook.page(source) if source.suffix == ".ipynb" else source.read_text(encoding="utf-8")
        _write(folder / place, relinked(text, source, places))
    listed = "\n".join(sorted(page.stem for page in docs.glob("adr/[0-9]*.md")))
    with (folder / "adr" / "README.md").open("a", encoding="utf-8") as index:
        index.write(f"\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n")
    for name in EXAMPLES:
        _write(folder / "examples" / f"{name}.md", walkthrough.page(ROOT / "examples" / f"{name}.py"))
    stage_reports(REPORTS, folder)
    shutil.copy(docs / "conf.py", folder)
    shutil.copytree(docs / "_static", folder / "_static")
    reference.write(folder / "reference")


def stage_reports(reports: Path, folder: Path) -> None:
    """Bring the pages of reports to where Sphinx takes files from as they are, and name them on the page about them."""
    target = folder / "extra" / "reports"
    target.mkdir(parents=True)
    names = sorted(path.stem for path in reports.glob("*.html"))
    for name in names:
        shutil.copy(reports / f"{name}.html", target)
    listed = "\n".join(f'* <a href="../reports/{name}.html">{name}</a>' for name in names)
    with (folder / "conformance" / "backends.md").open("a", encoding="utf-8", newline="\n") as page:
        page.write(f"\n## Reports in full\n\n{listed}\n" if names else "")


def relinked(text: str, source: Path, places: dict[Path, Path]) -> str:
    """A page as the site has it: links lead to where pages are staged, and `tk.sin` leads into the reference.

    Of a file that is no page, the path is shown.

    Raises:
        LookupError: if a link leads nowhere.
    """
    here = Path(places[source].as_posix().removeprefix("../")).parent

    def moved(found: re.Match[str]) -> str:
        label, target, anchor = found[1], found[2], found[3] or ""
        if "://" in target:
            return found[0]
        file = (source.parent / target).resolve()
        if not file.exists():
            raise LookupError(f"{source.relative_to(ROOT).as_posix()}: the link to {target} leads nowhere")
        if file in places:
            place = Path("index.md") if file == ROOT / "README.md" else places[file]
            return f"[{label}]({Path(os.path.relpath(place, here)).as_posix()}{anchor})"
        path = file.relative_to(ROOT).as_posix()
        return f"`{path}`" if label == path else f"{label} (`{path}`)"

    def linked(found: re.Match[str]) -> str:
        try:
            named = operator.attrgetter(found[1])(tensorken)
        except AttributeError:  # a name that is gone, or one that the reader is to make
            return found[0]
        package = str(getattr(named, "__module__", "")).partition(".")[0]
        home = package if package.startswith("tensorken_") else "tensorken"  # a plugin documents what it adds
        return f"{{py:obj}}`tk.{found[1]} <{home}.{found[1]}>`"

    def mended(part: str) -> str:
        return part if part.startswith("```") else _NAME.sub(linked, _LINK.sub(moved, part))

    return "".join(mended(part) for part in _FENCED.split(text))


def build(sources: Path, target: Path) -> int:
    """Make HTML of the staged pages; the exit status of Sphinx."""
    from sphinx.cmd.build import main as sphinx

    options = ["--fail-on-warning", "--keep-going", "--quiet", "--jobs", "auto", "-b", "html"]
    return int(sphinx([*options, "-d", str(sources.parent / "doctrees"), str(sources), str(target)]))


def complaints(site: Path) -> list[str]:
    """What is wrong with a built site: public names that it lacks, and what it would load from elsewhere."""
    found = [f"the reference lacks {name}" for name in sorted(public() - described(site))]
    for page in sorted(site.rglob("*.html")):
        for address in external(page.read_text(encoding="utf-8")):
            found.append(f"{page.relative_to(site).as_posix()} loads {address}")
    return found


def public() -> set[str]:
    """The full name of everything that users may write."""
    named = [*rooms(), *reference.plugins()]
    names = {f"{room.namespace}.{name}" for room in named for name in room.names}
    names |= {f"tensorken.{name}" for room in named for name in room.also}
    members = reference.tensor_members()
    return names | {f"tensorken.Tensor.{name}" for name in members["methods"] + members["attributes"]}


def described(site: Path) -> set[str]:
    """The full name of everything that the site's inventory has."""
    from sphinx.util.inventory import InventoryFile

    with (site / "objects.inv").open("rb") as file:
        inventory = InventoryFile.load(file, "", lambda base, path: path)
    return {name for kind, names in inventory.items() if kind.startswith("py:") for name in names}


def external(html: str) -> list[str]:
    """The addresses elsewhere from which a page loads scripts, styles, fonts or pictures; links do not load."""
    tags = re.findall(r"<(?:script|img|link|iframe|source)\b[^>]*>", html)
    return [a for tag in tags for a in re.findall(r"(?:src|href)=[\"']((?:https?:)?//[^\"']*)", tag)]


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", newline="\n")


def main(arguments: list[str] | None = None) -> int:
    """Build the site and look it over."""
    parser = argparse.ArgumentParser(prog="nox -s docs --", description="build the documentation site")
    parser.add_argument("target", nargs="?", type=Path, default=ROOT / "site", help="the folder of the site")
    target: Path = parser.parse_args(arguments).target.resolve()
    if target.exists() and any(target.iterdir()) and not (target / "objects.inv").exists():
        print(
            f"docs: {target} holds something else than a site; name an empty or a new folder", file=sys.stderr
        )
        return 1
    with tempfile.TemporaryDirectory(prefix="tensorken-docs-") as folder:
        sources = Path(folder, "pages")
        stage(sources)
        shutil.rmtree(target, ignore_errors=True)
        status = build(sources, target)
    if status:
        return status
    wrong = complaints(target)
    for line in wrong:
        print(f"docs: {line}", file=sys.stderr)
    print(f"docs: the site begins at {target / 'index.html'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
