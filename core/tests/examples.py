"""The number of hypothesis examples: the number that a test requests, scaled by the current profile."""

from __future__ import annotations

from hypothesis import settings

USUAL = 100
"""How many the profile `desk` draws."""


def examples(count: int) -> int:
    """`count` examples by default, fewer in `nox -s tests`, more in `nox -s nightly`; at least 5."""
    return max(5, count * settings.default.max_examples // USUAL)
