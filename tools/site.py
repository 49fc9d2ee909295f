"""Build the documentation site: `nox -s docs`.

The pages are staged in one folder: docs/ with its notebooks, CHANGELOG.md and CONTRIBUTING.md, the examples with their
output and figures, and the reference. Sphinx makes HTML of them and runs the pages with figures; its warnings are
errors. Finally the site is checked: it has all public names, loads nothing from the network, and its images have texts.
"""

from __future__ import annotations

import argparse
import json
import operator
import os
import re
import shutil
import sys
import tempfile
import types
from pathlib import Path

import tensorken
from tools import (
    certificates,
    changelog,
    charts,
    figures,
    gallery,
    notebook,
    reference,
    search,
    source_links,
    versions,
    walkthrough,
)
from tools.public_modules import public_modules
from tools.workspace import ROOT, version

WORKSPACE_PAGES = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "CODE_OF_CONDUCT.md": "project/code-of-conduct.md",
    "README.md": "../README.md",  # next to the pages as next to docs/, as they include parts of it
}
"""Pages at the top of the workspace, and their paths in the site."""

EXAMPLES = ("tour", "autodiff_cookbook", "train", "vertex")
"""The examples with prose, which are run for their pages."""

GALLERY = (
    "burgers",
    *[f"gallery/{path.stem}" for path in sorted((ROOT / "examples" / "gallery").glob("*.py"))],
)
"""The compact programs; the tests compare their outputs with files, which their pages show."""

REPORTS = ROOT / "reports"
"""The folder in which `nox -s conformance` saves reports of our backends; the site includes those present."""

TEMPLATES = ROOT / "conformance" / "src" / "tensorken_conformance" / "templates"
"""The projects of `tensorken new`."""

LARGEST_IMAGE = 150_000
"""The limit of an image in bytes."""

KERNEL_SETTINGS = """
c = get_config()
c.IPKernelApp.log_level = "ERROR"
c.InlineBackend.figure_formats = {"svg"}
c.InlineBackend.print_figure_kwargs = {"bbox_inches": None, "metadata": {"Date": None}}
c.InlineBackend.rc = {}
"""
"""Settings of the kernels that run notebooks: figures are SVG in the style of docs/matplotlibrc."""

CERTIFICATE = "<!-- the certificate of this backend -->"
BADGES = "<!-- the badges of all backends -->"

_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"`tk\.([A-Za-z_][\w.]*)`(?![^\[\]]*\]\()")  # not within the text of a link
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")  # images keep their paths


def stage(folder: Path) -> None:
    """Copy all files that Sphinx reads to one folder."""
    docs = ROOT / "docs"
    paths = {page: page.relative_to(docs) for page in docs.rglob("*.md") if page.name != "template.md"}
    paths |= {file: file.relative_to(docs).with_suffix(".md") for file in notebook.notebooks()}
    paths |= {ROOT / name: Path(path) for name, path in WORKSPACE_PAGES.items()}
    written = list(paths.items())
    paths |= {ROOT / "examples" / f"{name}.py": Path(f"examples/{name}.md") for name in (*EXAMPLES, *GALLERY)}
    for source, path in written:
        text = notebook.page(source) if source.suffix == ".ipynb" else source.read_text(encoding="utf-8")
        _write(folder / path, notebook.with_cells(rewrite_links(text, source, paths)))
    listed = "\n".join(sorted(page.stem for page in docs.glob("adr/[0-9]*.md")))
    with (folder / "adr" / "README.md").open("a", encoding="utf-8") as index:
        index.write(f"\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n")
    stage_examples(folder)
    performance = folder / "performance.md"
    _write(performance, charts.with_charts(performance.read_text(encoding="utf-8"), folder))
    stage_reports(REPORTS, folder)
    stage_certificates(REPORTS, folder)
    changes = ROOT / "CHANGELOG.md"
    _write(folder / paths[changes], rewrite_links(changelog.page(), changes, paths))
    shutil.copy(docs / "conf.py", folder)
    _write(folder / "ipython" / "profile_default" / "ipython_kernel_config.py", KERNEL_SETTINGS)
    for name in ("_static", "_templates"):
        shutil.copytree(docs / name, folder / name)
    shutil.copytree(TEMPLATES, folder.parent / TEMPLATES.relative_to(ROOT))  # pages include their code
    sources = {
        path.with_suffix("").as_posix(): file.relative_to(ROOT).as_posix() for file, path in paths.items()
    }
    _write(folder / "sources.json", json.dumps(sources))
    reference.write(folder / "reference")


def stage_examples(folder: Path) -> None:
    """Write the pages of the examples with their figures, and the gallery with a card for each."""
    described = {
        name: figures.description(ROOT / "examples" / f"{name}.py") for name in (*EXAMPLES, *GALLERY)
    }
    for name, description in described.items():
        example, page = ROOT / "examples" / f"{name}.py", folder / "examples" / f"{name}.md"
        printed = None  # the examples with prose run here; the outputs of the others are compared by tests
        if name in GALLERY:
            printed = (ROOT / "tests" / "golden" / f"{name}.txt").read_text(encoding="utf-8")
        image = f"![{description}]({page.stem}.svg)" if description else ""
        _write(page, walkthrough.page(example, printed, image))
        if description:
            figures.draw(example, page.with_suffix(".svg"))
    cards = folder / "gallery.md"
    of_page = {f"examples/{name}": description for name, description in described.items()}
    _write(cards, gallery.with_cards(cards.read_text(encoding="utf-8"), of_page))


def stage_reports(reports: Path, folder: Path) -> None:
    """Copy the HTML reports to Sphinx's folder of extra files, and link them from their page."""
    target = folder / "extra" / "reports"
    target.mkdir(parents=True)
    names = sorted(path.stem for path in reports.glob("*.html"))
    for name in names:
        shutil.copy(reports / f"{name}.html", target)
    listed = "\n".join(f'* <a href="../reports/{name}.html">{name}</a>' for name in names)
    with (folder / "conformance" / "backends.md").open("a", encoding="utf-8", newline="\n") as page:
        page.write(f"\n## Reports in full\n\n{listed}\n" if names else "")


def stage_certificates(reports: Path, folder: Path) -> None:
    """Put the certificates of the backends into their pages, and the badges of all on the front page."""
    found = certificates.certificates(reports)
    for name, certificate in found.items():
        report = f"../reports/{name}.html" if (reports / f"{name}.html").exists() else ""
        _replace(folder / "backends" / f"{name}.md", CERTIFICATE, certificates.facts(certificate, report))
    _replace(folder / "index.md", BADGES, certificates.badges(found, "backends"))


def _replace(page: Path, mark: str, text: str) -> None:
    """Put a text in the place of a mark of a page."""
    before, found, after = page.read_text(encoding="utf-8").partition(mark)
    if not found:
        raise LookupError(f"{page.name} has no {mark}")
    _write(page, before + text + after)


def rewrite_links(text: str, source: Path, paths: dict[Path, Path]) -> str:
    """Rewrite the links of a page for the site; `tk.sin` becomes a link to the reference.

    A link to a file that is not a page becomes its path.

    Raises:
        LookupError: if the target of a link does not exist.
    """
    folder = Path(paths[source].as_posix().removeprefix("../")).parent

    def new_link(match: re.Match[str]) -> str:
        label, target, anchor = match[1], match[2], match[3] or ""
        if "://" in target:
            return match[0]
        file = (source.parent / target).resolve()
        if not file.exists():
            raise LookupError(
                f"{source.relative_to(ROOT).as_posix()}: the target {target} of a link does not exist"
            )
        if file in paths:
            page = Path("index.md") if file == ROOT / "README.md" else paths[file]
            return f"[{label}]({Path(os.path.relpath(page, folder)).as_posix()}{anchor})"
        path = file.relative_to(ROOT).as_posix()
        return f"`{path}`" if label == path else f"{label} (`{path}`)"

    def reference_link(match: re.Match[str]) -> str:
        try:
            value = operator.attrgetter(match[1])(tensorken)
        except AttributeError:  # an unknown name, or one that the reader defines
            return match[0]
        first, *rest = match[1].split(".")
        module = getattr(tensorken, first)
        if isinstance(module, types.ModuleType):  # documented under its own name, such as tensorken_core.tree
            return f"{{py:obj}}`tk.{match[1]} <{'.'.join([module.__name__, *rest])}>`"
        # A plugin documents its own names, tensorken the names of core.
        package = str(getattr(value, "__module__", "")).partition(".")[0]
        is_plugin = package.startswith("tensorken_") and package != "tensorken_core"
        return f"{{py:obj}}`tk.{match[1]} <{package if is_plugin else 'tensorken'}.{match[1]}>`"

    def rewritten(part: str) -> str:
        return part if part.startswith("```") else _NAME.sub(reference_link, _LINK.sub(new_link, part))

    return "".join(rewritten(part) for part in _FENCED.split(text))


def build(sources: Path, target: Path, builder: str = "html") -> int:
    """Build HTML from the staged pages, or let `linkcheck` try their links; returns the exit status of Sphinx."""
    from sphinx.cmd.build import main as sphinx

    os.environ |= {
        "MATPLOTLIBRC": str(figures.STYLE),
        "IPYTHONDIR": str(sources / "ipython"),
        "JUPYTER_PLATFORM_DIRS": "1",  # otherwise Jupyter warns about its folders
        "OPENBLAS_NUM_THREADS": "1",  # the kernels of several pages run at the same time
    }
    options = [
        "--fail-on-warning",
        "--keep-going",
        "--show-traceback",
        "--quiet",
        "--jobs",
        "auto",
        "-b",
        builder,
    ]
    return int(sphinx([*options, "-d", str(sources.parent / "doctrees"), str(sources), str(target)]))


def check(site: Path) -> list[str]:
    """Check a built site.

    Returns the missing public names, the addresses that it would load, faults of images, and the questions that its
    search does not answer.
    """
    faults = [f"the reference lacks {name}" for name in sorted(public_names() - documented_names(site))]
    for page in sorted(site.rglob("*.html")):
        html, name = page.read_text(encoding="utf-8"), page.relative_to(site).as_posix()
        faults += [f"{name} loads {address}" for address in external_addresses(html)]
        faults += [f"{name} has an image without alternative text: {image}" for image in silent_images(html)]
        faults += [f"{name} has an image without a size: {image}" for image in unsized_images(html)]
    for image in sorted((site / "_images").glob("*")):
        if image.stat().st_size > LARGEST_IMAGE:
            faults.append(f"{image.name} has {image.stat().st_size:,} bytes, more than {LARGEST_IMAGE:,}")
    return [*faults, *search.faults(site)]


def public_names() -> set[str]:
    """The full names of all public objects."""
    owners = [*public_modules(), *reference.plugins()]
    names = {f"{owner.namespace}.{name}" for owner in owners for name in owner.names}
    names |= {f"tensorken.{name}" for owner in owners for name in owner.aliases}
    members = reference.tensor_members()
    return names | {f"tensorken.Tensor.{name}" for name in members["methods"] + members["attributes"]}


def documented_names(site: Path) -> set[str]:
    """The full names in the site's inventory."""
    from sphinx.util.inventory import InventoryFile

    with (site / "objects.inv").open("rb") as file:
        inventory = InventoryFile.load(file, "", lambda base, path: path)
    return {name for kind, names in inventory.items() if kind.startswith("py:") for name in names}


def external_addresses(html: str) -> list[str]:
    """The external addresses from which a page loads scripts, styles, fonts or images; links do not count."""
    tags = re.findall(r"<(?:script|img|link|iframe|source)\b[^>]*>", html)
    return [a for tag in tags for a in re.findall(r"(?:src|href)=[\"']((?:https?:)?//[^\"']*)", tag)]


def silent_images(html: str) -> list[str]:
    """The images of a page whose alternative text is missing, empty, or their address; decoration needs none."""
    found = []
    for image in re.findall(r"<img\b[^>]*>", html):
        if 'role="presentation"' in image:
            continue
        text, address = (re.search(rf'\b{name}="([^"]*)"', image) for name in ("alt", "src"))
        if text is None or not text[1].strip() or (address is not None and text[1] == address[1]):
            found.append(image)
    return found


def unsized_images(html: str) -> list[str]:
    """The pictures of a page without a width or a height: a page would move while it loads them."""
    pictures = [tag for tag in re.findall(r"<img\b[^>]*>", html) if "_images/" in tag]
    return [tag for tag in pictures if not all(f" {size}=" in tag for size in ("width", "height"))]


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", newline="\n")


def main(arguments: list[str] | None = None) -> int:
    """Build and check the site."""
    parser = argparse.ArgumentParser(prog="nox -s docs --", description="build the documentation site")
    parser.add_argument("target", nargs="?", type=Path, default=ROOT / "site", help="the folder of the site")
    parser.add_argument("--links", action="store_true", help="try all links to other sites instead")
    options = parser.parse_args(arguments)
    target: Path = options.target.resolve()
    if target.exists() and any(target.iterdir()) and not (target / "objects.inv").exists():
        print(f"docs: {target} is not empty and not a site; name an empty or new folder", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="tensorken-docs-") as folder:
        sources = Path(folder, "pages")
        stage(sources)
        if options.links:
            return build(sources, Path(folder, "links"), "linkcheck")
        shutil.rmtree(target, ignore_errors=True)
        status = build(sources, target)
    if status:
        return status
    source_links.write_pages(target)
    versions.write_list(target, [(version(), "./")])
    faults = check(target)
    for line in faults:
        print(f"docs: {line}", file=sys.stderr)
    print(f"docs: the site is at {target / 'index.html'}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
