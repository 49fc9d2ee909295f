"""Check a built site in a browser: `nox -s "nightly(site)"` runs it on all pages, `-- PAGE ...` on some.

Each page is loaded twice: 1280 pixels wide and light, and 390 pixels wide and dark. It must be at most 1 MB with all
that it loads, stay in place while it loads, not scroll sideways, write no error to the console, load nothing that is
missing, and break no rule of axe for WCAG 2 level AA: contrast, texts for pictures, names of links and fields.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tools.workspace import ROOT

BYTES = 1_000_000
SHIFT = 0.01
"""The largest sum of layout shifts; 0.1 is the limit of a good page by Web Vitals."""

VIEWS: tuple[tuple[str, int, int], ...] = (("light", 1280, 900), ("dark", 390, 844))

MEASURE = """async () => {
  const shifts = [];
  const observer = new PerformanceObserver((list) => shifts.push(...list.getEntries()));
  observer.observe({ type: "layout-shift", buffered: true });
  await new Promise((resolve) => setTimeout(resolve, 50));
  const loaded = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
  return {
    bytes: loaded.reduce((sum, entry) => sum + entry.decodedBodySize, 0),
    shift: shifts.filter((entry) => !entry.hadRecentInput).reduce((sum, entry) => sum + entry.value, 0),
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  };
}"""

AXE = """async () => (await axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] })).violations.map(
  ({ id, nodes: [first, ...others] }) =>
    `${id}: ${1 + others.length} of ${first.target.join(" ")}: ${first.any[0]?.message ?? first.html}`,
)"""


@contextmanager
def served(site: Path) -> Iterator[str]:
    """Serve a folder by HTTP on this machine; returns the address."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def browser() -> Iterator[Any]:
    """A Chromium without a window: that of the system, or that of `playwright install chromium`."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = shutil.which("chromium") or shutil.which("google-chrome")
        launched = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        try:
            yield launched
        finally:
            launched.close()


def faults_of(page: Any, address: str) -> list[str]:
    """Load an address in a page of a browser; returns the faults."""
    from axe_playwright_python import base

    axe = Path(base.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
    found: list[str] = []

    def log(message: Any) -> None:
        if message.type == "error":
            found.append(f"console: {message.text} {message.location.get('url', '')}")

    def fail(error: Any) -> None:
        found.append(f"script: {error}")

    page.on("console", log)
    page.on("pageerror", fail)
    page.goto(address, wait_until="load")
    measured = page.evaluate(MEASURE)
    page.evaluate(axe)
    found += page.evaluate(AXE)
    page.remove_listener("console", log)
    page.remove_listener("pageerror", fail)
    if measured["bytes"] > BYTES:
        found.append(f"size: {measured['bytes']} bytes, at most {BYTES}")
    if measured["shift"] > SHIFT:
        found.append(f"layout shift: {measured['shift']:.3f}, at most {SHIFT}")
    if measured["overflow"] > 0:
        found.append(f"width: the page scrolls sideways by {measured['overflow']} pixels")
    return found


def pages_of(site: Path) -> list[str]:
    """The pages of a site, with one page of source, and without the kit's reports, which have tests of their own."""
    names = [path.relative_to(site).as_posix() for path in sorted(site.rglob("*.html"))]
    sources = [name for name in names if name.startswith("source/")]
    return [name for name in names if not name.startswith(("reports/", "source/"))] + sources[:1]


def main(arguments: list[str] | None = None) -> int:
    """Check a site and print its faults."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.site_checks", description="check a site in a browser"
    )
    parser.add_argument("pages", nargs="*", help="such as index.html; default: all")
    parser.add_argument("--site", type=Path, default=ROOT / "site", help="the folder of the site")
    parser.add_argument("--pictures", type=Path, help="a folder for a picture of each page")
    options = parser.parse_args(arguments)
    pages = options.pages or pages_of(options.site)
    failed = 0
    with served(options.site) as address, browser() as chromium:
        for scheme, width, height in VIEWS:
            viewport = {"width": width, "height": height}
            context = chromium.new_context(color_scheme=scheme, viewport=viewport, reduced_motion="reduce")
            tab = context.new_page()
            for name in pages:
                for fault in faults_of(tab, f"{address}/{name}"):
                    failed += 1
                    print(f"{name} ({scheme}, {width} pixels): {fault}", flush=True)
                if options.pictures:
                    options.pictures.mkdir(parents=True, exist_ok=True)
                    file = options.pictures / f"{name.replace('/', '-')}-{scheme}.png"
                    tab.screenshot(path=str(file), full_page=True)
            context.close()
    print(f"site: {len(pages)} pages, {failed} faults")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
