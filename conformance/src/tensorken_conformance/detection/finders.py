"""The cases that found the seeded faults and mutants, as the selftest recorded them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType

from tensorken_conformance.detection.recorded import read


@functools.cache
def finders() -> Mapping[str, str]:
    """The id of the case that found each fault and each mutant when the selftest was recorded.

    >>> finders()["rules/relu-rises-at-zero"]
    'derivatives.decisions/relu-at-zero/float64'
    """
    return MappingProxyType(read("finders.json"))
