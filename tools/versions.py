"""Versions of the site: `python -m tools.versions SITE PAGES` adds a built site to a folder that has all versions.

The folder has a subfolder for each version, `stable` with the newest release, and at its top a page that leads there,
the page for missing addresses, and the files for search engines. `versions.json` in each version lists all, for the
switch in the sidebar.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.workspace import addresses, version

STABLE = "stable"
FORWARD = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Documentation</title>
<meta http-equiv="refresh" content="0; url=stable/"><a href="stable/">Documentation</a></html>
"""


def add(site: Path, pages: Path, name: str, documentation: str = "") -> list[str]:
    """Add a site as a version, replacing one of the same name; returns all versions, the newest first.

    Args:
        site: the folder of the built site.
        pages: the folder of all versions; made if it is missing.
        name: the version.
        documentation: the address of `pages`, for the list of pages for search engines.
    """
    pages.mkdir(parents=True, exist_ok=True)
    copy(site, pages / name)
    folders = [
        path.name for path in pages.iterdir() if (path / "objects.inv").exists() and path.name != STABLE
    ]
    names = sorted(folders, key=order, reverse=True)
    stable = next((name for name in names if name.replace(".", "").isdigit()), names[0])
    copy(pages / stable, pages / STABLE)
    for folder in (*names, STABLE):
        write_list(pages / folder, [(other, f"../{other}/") for other in names])
    (pages / "index.html").write_text(FORWARD, encoding="utf-8", newline="\n")
    shutil.copy(pages / STABLE / "404.html", pages)
    files = {"robots.txt": robots(documentation)}
    if documentation:
        files["sitemap.xml"] = sitemap(pages / STABLE, f"{documentation}/{STABLE}")
    for file, text in files.items():
        (pages / file).write_text(text, encoding="utf-8", newline="\n")
    return names


def copy(source: Path, target: Path) -> None:
    """Copy a folder; the target has nothing else."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)


def order(name: str) -> tuple[bool, list[int], str]:
    """The key that sorts versions by number; names without a number come first, pre-releases before their release.

    >>> sorted(["1.10.0", "1.9.0", "dev", "1.9.0rc1"], key=order)
    ['dev', '1.9.0rc1', '1.9.0', '1.10.0']
    """
    digits = name.partition("rc")[0].split(".")
    if not all(part.isdigit() for part in digits):
        return False, [], name
    return True, [*map(int, digits), "rc" not in name], name


def write_list(folder: Path, versions: Sequence[tuple[str, str]]) -> None:
    """Write the list of versions of one of them: names, and addresses relative to it."""
    rows = [{"version": name, "url": url} for name, url in versions]
    (folder / "versions.json").write_text(json.dumps(rows) + "\n", encoding="utf-8", newline="\n")


def sitemap(site: Path, address: str) -> str:
    """The list of a site's pages for search engines, as sitemaps.org defines it."""
    hidden = ("404.html", "search.html", "genindex.html")
    pages = [path.relative_to(site).as_posix() for path in sorted(site.rglob("*.html"))]
    shown = [page for page in pages if page not in hidden and not page.startswith(("source/", "reports/"))]
    urls = "".join(f"  <url><loc>{address}/{page}</loc></url>\n" for page in shown)
    head = '<?xml version="1.0" encoding="utf-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
    return f"{head}{urls}</urlset>\n"


def robots(address: str) -> str:
    """The rules for search engines: they see all pages."""
    return "User-agent: *\nAllow: /\n" + (f"Sitemap: {address}/sitemap.xml\n" if address else "")


def main(arguments: list[str] | None = None) -> int:
    """Add a version."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.versions", description="add a site to all versions"
    )
    parser.add_argument("site", type=Path, help="the built site")
    parser.add_argument("pages", type=Path, help="the folder of all versions")
    parser.add_argument("--name", default=version(), help="the name of the version; default: that in VERSION")
    options = parser.parse_args(arguments)
    names = add(options.site, options.pages, options.name, addresses()["documentation"])
    print(f"versions: {', '.join(names)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
