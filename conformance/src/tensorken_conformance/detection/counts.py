"""The counts of the last full selftest, which hold only for its ops, laws and faults."""

from __future__ import annotations

import functools
import hashlib
from typing import Any

import tensorken_conformance.faults
import tensorken_conformance.laws  # noqa: F401, importing them registers laws and faults
from tensorken_conformance.detection.recorded import read
from tensorken_conformance.faults.fault import FAULTS
from tensorken_conformance.law import LAWS
from tensorken_core.language.op import OPS

FILE = "detection.json"


def fingerprint() -> str:
    """A digest of the ops, laws and faults of this process."""
    ops = [(op.name, op.arity, op.params, op.operand_kinds, op.results, op.domain) for op in OPS.values()]
    laws = [(law.id, law.says, law.symbolic) for law in LAWS.values()]
    faults = [(fault.id, fault.law, fault.ops, fault.crude, fault.says) for fault in FAULTS.values()]
    return hashlib.sha256(repr((sorted(ops), sorted(laws), sorted(faults))).encode()).hexdigest()[:16]


@functools.cache
def recorded() -> dict[str, Any]:
    """The counts of that selftest, and `fingerprint`, the digest of its ops, laws and faults.

    >>> found = recorded()
    >>> found["caught"] == found["faults"]
    True
    """
    found: dict[str, Any] = read(FILE)
    return found


def rate(digest: str) -> tuple[int, int]:
    """The number of caught faults and of all faults, for a digest of ops, laws and faults; zeros if unknown.

    >>> rate("another table")
    (0, 0)
    """
    found = recorded()
    return (found["caught"], found["faults"]) if digest == found["fingerprint"] else (0, 0)
