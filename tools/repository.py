"""The addresses of the project, from `[tool.tensorken]` in pyproject.toml: `python -m tools.repository` copies them.

They go to `[project.urls]` of each distribution, which an sdist must have in its own pyproject.toml, and to
CITATION.cff.  An address that is empty is not known, and appears nowhere; then no release can be published.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence

from tools import workspace
from tools.workspace import ROOT, distributions


def addresses() -> dict[str, str]:
    """The known addresses, by their labels on the index."""
    known = workspace.addresses()
    repository, documentation = known["repository"], known["documentation"]
    found = {"Documentation": documentation} if documentation else {}
    if repository:
        found |= {
            "Repository": repository,
            "Issues": f"{repository}/issues",
            "Changelog": f"{repository}/blob/main/CHANGELOG.md",
        }
    return found


def with_addresses(name: str, text: str, known: Mapping[str, str]) -> str:
    """The text of a pyproject.toml or CITATION.cff with these addresses, and no others."""
    if name == "CITATION.cff":
        text = re.sub(r"^(repository-code|url): .*\n", "", text, flags=re.MULTILINE)
        fields = {"repository-code": known.get("Repository"), "url": known.get("Documentation")}
        lines = "".join(f"{field}: {address}\n" for field, address in fields.items() if address)
        return re.sub(r"^(?=license: )", lines, text, count=1, flags=re.MULTILINE)
    text = re.sub(r"^\[project\.urls\]\n(?:.+\n)*\n", "", text, flags=re.MULTILINE)
    lines = "".join(f'{label} = "{address}"\n' for label, address in known.items())
    table = f"[project.urls]\n{lines}\n" if known else ""
    return re.sub(r"^(?=\[(project\.|tool\.))", table, text, count=1, flags=re.MULTILINE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the addresses, or check them; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.repository", description=__doc__.split(":")[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if a file has other addresses"
    )
    options = parser.parse_args(arguments)
    files = [*(folder / "pyproject.toml" for folder in distributions(optional=True)), ROOT / "CITATION.cff"]
    known, status = addresses(), 0
    for file in files:
        text = file.read_text(encoding="utf-8")
        if (wanted := with_addresses(file.name, text, known)) == text:
            continue
        if options.check:
            path = file.relative_to(ROOT).as_posix()
            print(
                f"{path} has other addresses than pyproject.toml; run 'python -m tools.repository'",
                file=sys.stderr,
            )
            status = 1
        else:
            file.write_text(wanted, encoding="utf-8", newline="\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
