"""The workspace: its root, distributions and version."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def distributions() -> list[Path]:
    """The folders of all distributions with modules, core first."""
    families = ("core", "backends/*", "plugins/*", "conformance")
    return [file.parent for family in families for file in sorted(ROOT.glob(f"{family}/pyproject.toml"))]


def version() -> str:
    """The version of every distribution."""
    return (ROOT / "VERSION").read_text(encoding="utf-8").strip()
