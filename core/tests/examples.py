"""How many examples hypothesis draws: what a test asks for, in proportion to the profile that is in force."""

from __future__ import annotations

from hypothesis import settings

USUAL = 100
"""How many the profile `desk` draws."""


def examples(count: int) -> int:
    """So many on a desk, fewer in `nox -s tests`, more in `nox -s nightly`; at least 5."""
    return max(5, count * settings.default.max_examples // USUAL)
