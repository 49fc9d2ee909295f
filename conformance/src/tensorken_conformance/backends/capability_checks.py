"""Capability checks: whether each entry of a backend's declared capabilities is valid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorken_conformance import limits
from tensorken_conformance.backends.delegation import BACKENDS
from tensorken_conformance.operands.samples import takes
from tensorken_core.host.discovery import did_you_mean
from tensorken_core.language.capabilities import Capabilities
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS


def _unknown_op(name: str) -> str:
    return f"there is no op {name!r}{did_you_mean(name, OPS)}"


def _unknown_dtype(name: str) -> str:
    return f"there is no dtype {name!r}{did_you_mean(name, DTYPES)}"


def _place(declared: Capabilities, key: str) -> str:
    """The error of a key, which names an op, a dtype, both, or `*`; empty if the key is valid."""
    op, _, dtype = key.partition(".")
    if op != "*" and op not in OPS:
        return _unknown_op(op)
    if dtype and dtype not in DTYPES:
        return _unknown_dtype(dtype)
    if dtype and dtype not in declared.dtypes:
        return f"{key!r} is about {dtype}, which is none of the declared dtypes; take it out"
    if dtype and op != "*" and not takes(OPS[op], DTYPES[dtype]):
        return f"{key!r} matches nothing: the language has no {op} of {dtype}"
    return ""


def _dtype(declared: Capabilities, key: str) -> str:
    return "" if key in DTYPES else _unknown_dtype(key)


def _ulp(declared: Capabilities, key: str) -> str:
    op, _, dtype = key.partition(".")
    if wrong := _place(declared, key):
        return wrong
    floats = [d for d in DTYPES.values() if d.kind == "float" and dtype in ("", d.name)]
    if not floats or (op != "*" and not any(takes(OPS[op], d) for d in floats)):
        return f"{key!r} matches nothing: only floating-point results have such errors"
    bound: Any = declared.ulp[key]
    if isinstance(bound, bool) or not isinstance(bound, int) or bound < 0:
        return f"the error of {key!r} must be an int that is not negative, got {bound!r}"
    limit = _limit(op, [d.name for d in floats if not declared.dtypes or d.name in declared.dtypes])
    if limit is not None and bound > limit:
        return f"{key!r} is declared {bound} off, but level 2 allows {limit}, to which it is held there"
    return ""


def _limit(op: str, dtypes: Sequence[str]) -> int | None:
    """The largest error that level 2 allows for an op, or for `*`, in any of the dtypes; None if there is no limit.

    Sums and factorizations have bounds by theorems instead.
    """
    named = [*limits.ARITHMETIC, *limits.QUOTIENTS, *limits.FUNCTIONS]
    ops = named if op == "*" else [op] if op in named else []
    return max((limits.largest(name, dtype, 2) for name in ops for dtype in dtypes), default=None)


def _unsupported(declared: Capabilities, key: str) -> str:
    reason: Any = declared.unsupported[key]
    if not isinstance(reason, str) or not reason.strip():
        return f"{key!r} has no reason; say why, in a few words"
    return _place(declared, key)


def _flushed(declared: Capabilities, key: str) -> str:
    if key not in DTYPES:
        return _unknown_dtype(key)
    if key not in declared.dtypes or DTYPES[key].kind != "float":
        return f"{key!r} is none of the declared floating-point dtypes"
    return ""


def _nondeterministic(declared: Capabilities, key: str) -> str:
    if key not in OPS:
        return _unknown_op(key)
    if all(declared.why_not(key, dtype) for dtype in DTYPES):
        return f"{key!r} is declared unsupported, too"
    return ""


def _delegate(declared: Capabilities, key: str) -> str:
    return (
        "" if key in BACKENDS else f"there is no backend {key!r} to hand work to{did_you_mean(key, BACKENDS)}"
    )


FIELDS: dict[str, Callable[[Capabilities, str], str]] = {
    "dtypes": _dtype,
    "ulp": _ulp,
    "unsupported": _unsupported,
    "flushes_subnormals": _flushed,
    "nondeterministic": _nondeterministic,
    "delegates": _delegate,
}
"""The fields of capabilities with entries, and the check of an entry."""


def fault_of(declared: Capabilities, field: str, key: str) -> str:
    """The error of an entry; empty if there is none.

    >>> fault_of(Capabilities(dtypes=("float32",), ulp={"floot": 2}), "ulp", "floot")
    "there is no op 'floot'; did you mean floor?"
    """
    return FIELDS[field](declared, key)
