"""The cases that found the seeded faults and mutants, as the selftest recorded them."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from importlib import resources
from types import MappingProxyType


@functools.cache
def finders() -> Mapping[str, str]:
    """The id of the case that found each fault and each mutant when the selftest was recorded.

    >>> finders()["rules/relu-rises-at-zero"]
    'derivatives.decisions/relu-at-zero/float64'
    """
    file = resources.files(__package__).joinpath("finders.json")
    return MappingProxyType(json.loads(file.read_text("utf-8")))
