"""The workspace: its root, distributions, version and settings."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


OPTIONAL = {
    "jax": "backends/jax",
    "torch": "backends/torch",
    "mpi": "plugins/mpi",
    "dask": "plugins/dask",
}
"""The folders of distributions over libraries that are not installed everywhere; sessions of their own test them."""


def distributions(*, optional: bool = False) -> list[Path]:
    """The folders of the distributions with modules, core first; the optional ones too if asked for."""
    families = ("core", "backends/*", "plugins/*", "conformance")
    folders = [file.parent for family in families for file in sorted(ROOT.glob(f"{family}/pyproject.toml"))]
    return [folder for folder in folders if optional or folder.name not in OPTIONAL]


def version() -> str:
    """The version of every distribution."""
    return (ROOT / "VERSION").read_text(encoding="utf-8").strip()


def settings() -> dict[str, Any]:
    """The tables `tool` of pyproject.toml, by name."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    tables: dict[str, Any] = tomllib.loads(text)["tool"]
    return tables


def addresses() -> dict[str, str]:
    """The addresses of the `repository` and of its `documentation`; empty if they are not known."""
    found: dict[str, str] = settings()["tensorken"]
    return {name: address.rstrip("/") for name, address in found.items()}
