"""Detection: what the last full selftest found, which holds for its ops, laws and faults and for no others."""

from __future__ import annotations

import functools
import hashlib
import json
from importlib import resources
from typing import Any

import tensorken_conformance.faults
import tensorken_conformance.laws  # noqa: F401, importing them registers laws and faults
from tensorken_conformance.faults.fault import FAULTS
from tensorken_conformance.law import LAWS
from tensorken_core.language.op import OPS

FILE = "detection.json"


def fingerprint() -> str:
    """A digest of the table of ops, the laws and the faults, as they are in this process."""
    ops = [(op.name, op.arity, op.params, op.operand_kinds, op.results, op.domain) for op in OPS.values()]
    laws = [(law.id, law.says, law.symbolic) for law in LAWS.values()]
    faults = [(fault.id, fault.law, fault.ops, fault.crude, fault.says) for fault in FAULTS.values()]
    return hashlib.sha256(repr((sorted(ops), sorted(laws), sorted(faults))).encode()).hexdigest()[:16]


@functools.cache
def recorded() -> dict[str, Any]:
    """The counts of that selftest, and `fingerprint`: the digest of what it ran with.

    >>> found = recorded()
    >>> found["caught"] == found["faults"]
    True
    """
    found: dict[str, Any] = json.loads(resources.files(__package__).joinpath(FILE).read_text("utf-8"))
    return found


def rate(digest: str) -> tuple[int, int]:
    """How many faults are caught, of how many, with ops, laws and faults of this digest; zeros if that is not known.

    >>> rate("another table")
    (0, 0)
    """
    found = recorded()
    return (found["caught"], found["faults"]) if digest == found["fingerprint"] else (0, 0)
