"""Write `packaging/conda/recipe.yaml`, from which rattler-build makes a conda package of each distribution.

`python -m tools.conda` writes the recipe from the pyproject.toml files, and `--check` compares.  conda has no extras:
what an extra requires is a constraint on what may be installed beside the package.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any

from tools import repository
from tools.workspace import ROOT, distributions, version

FILE = ROOT / "packaging" / "conda" / "recipe.yaml"
NAMES = {"torch": "pytorch", "matplotlib": "matplotlib-base", "wgpu": "wgpu-py"}
"""The names on conda-forge of packages that have others on PyPI."""

HEADER = """\
# Made by `python -m tools.conda` from the pyproject.toml files: change those.
# rattler-build build --recipe packaging/conda/recipe.yaml
schema_version: 1

context:
  version: "<version>"

recipe:
  name: tensorken
  version: ${{ version }}

source:
  path: ../..

build:
  number: 0

about:
  license: MIT
  license_file: LICENSE
<about>
outputs:"""


def recipe() -> str:
    """The text of the recipe."""
    known = repository.addresses()
    fields = {"repository": known.get("Repository"), "documentation": known.get("Documentation")}
    about = "".join(f"  {field}: {address}\n" for field, address in fields.items() if address)
    head = HEADER.replace("<about>", about).replace("<version>", version())
    folders = [folder.relative_to(ROOT).as_posix() for folder in distributions(optional=True)]
    return head + "".join("\n" + "\n".join(_output(folder)) + "\n" for folder in folders)


def requirement(text: str) -> str:
    """A requirement of conda from one of PyPI, without its marker: conda-forge has every package on all systems.

    >>> requirement("torch>=2.13; sys_platform == 'linux'"), requirement("tensorken-nn[plot]>=0.1,<0.2")
    ('pytorch >=2.13', 'tensorken-nn >=0.1,<0.2')
    """
    match = re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?([^;]*)(?:;.*)?", text.replace(" ", ""))
    assert match, text
    name = NAMES.get(match[1], match[1])
    return f"{name} {match[2]}".strip()


def _output(folder: str) -> Iterator[str]:
    """The lines of the output of the distribution in a folder."""
    project: dict[str, Any] = tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    extras = project.get("optional-dependencies", {}).values()
    required = sorted(map(requirement, project["dependencies"]))
    constrained = sorted({requirement(one) for extra in extras for one in extra} - {project["name"]})
    minimum = project["requires-python"]
    packages = [path.name for path in sorted((ROOT / folder / "src").iterdir()) if path.name != "__pycache__"]
    yield "  - package:"
    yield f"      name: {project['name']}"
    yield "    build:"
    yield "      noarch: python"
    if project.get("scripts"):
        yield "      python:"
        yield "        entry_points:"
        yield from (f"          - {name} = {target}" for name, target in project["scripts"].items())
    yield f"      script: python -m pip install ./{folder} --no-deps --no-build-isolation -vv"
    yield "    requirements:"
    yield "      host:"
    yield from (f"        - {one}" for one in (f"python {minimum}", "pip", "hatchling >=1.26"))
    yield "      run:"
    yield from (f"        - {one}" for one in (f"python {minimum}", *required))
    if constrained:
        yield "      run_constraints:"
        yield from (f"        - {one}" for one in constrained)
    yield "    about:"
    yield f'      summary: "{project["description"]}"'
    yield "    tests:"
    yield "      - python:"
    yield "          imports:"
    yield from (f"            - {package}" for package in packages)


def rendered() -> dict[str, str]:
    """The names and versions of the packages that rattler-build would build, after it has checked the recipe."""
    import rattler_build

    stage = rattler_build.Stage0Recipe.from_file(str(FILE))
    packages = [variant.recipe.package for variant in stage.render(rattler_build.VariantConfig())]
    return {package.name: package.version for package in packages}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the recipe; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.conda", description=__doc__.split(",")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the recipe is another")
    parser.add_argument("--render", action="store_true", help="have rattler-build check the recipe")
    options = parser.parse_args(arguments)
    if options.render:
        print(f"rattler-build would build {', '.join(map(' '.join, rendered().items()))}")
    elif not options.check:
        FILE.write_text(recipe(), encoding="utf-8", newline="\n")
    elif FILE.read_text(encoding="utf-8") != recipe():
        print(
            f"{FILE.relative_to(ROOT).as_posix()} is outdated; run 'python -m tools.conda'", file=sys.stderr
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
