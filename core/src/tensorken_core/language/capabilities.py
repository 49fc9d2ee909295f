"""Capabilities: the dtypes, ops and accuracy that a backend declares; the conformance kit checks them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tensorken_core.errors import ArgumentError


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The declaration of a backend: `capabilities = Capabilities(dtypes=(...), ...)` in its class or instance.

    A key of `ulp` and `unsupported` is an op (`"exp"`), a dtype (`"*.float16"`), both (`"exp.float32"`) or all
    (`"*"`); the most specific key counts, and an op takes precedence over a dtype.

    For dtypes that are not declared, creation, `x.astype` and `x.to` raise a DTypeError without calling the backend.
    The backend itself raises the error for an op that it declares unsupported: before any effect, a DTypeError, a
    BackendError (such as MissingOpError) or a NotImplementedError, in one line.

    Args:
        dtypes: the names of the dtypes that tensors may have.  By default core accepts all, and the kit assigns no
            level.
        unsupported: the unsupported ops, and the reasons; to be unsupported, an op with a body must be overridden.
        ulp: how far a floating-point result may be from the correctly rounded one, counted in representable
            numbers: 0 is correctly rounded.  By default the limits of the kit's levels apply.
        flushes_subnormals: the dtypes in which subnormal operands and results may become zero.
        nondeterministic: the ops whose results may differ from call to call, within their errors.
        contracts: whether programs may add a product to another number before it is rounded, as fused multiply-add
            instructions do.
        shares_memory: whether results may be views of operands, which is safe since values are immutable.
        symbolic: whether results have structure but no values, as in the string backend.
        delegates: the backends of this project that this backend calls by design, such as `("numpy",)`.
        thread_bound: whether only the thread that made a value can compute with it and read it, as the streams of some
            libraries require.

    Raises:
        ArgumentError: for an unknown field.

    >>> mine = Capabilities(dtypes=("bool", "int32", "float32"), ulp={"exp": 2, "exp.float32": 1, "*": 4})
    >>> mine.largest_error("exp", "float32"), mine.largest_error("sin", "float32")
    (1, 4)
    """

    dtypes: tuple[str, ...] = ()
    unsupported: Mapping[str, str] = field(default_factory=dict)
    ulp: Mapping[str, int] = field(default_factory=dict)
    flushes_subnormals: tuple[str, ...] = ()
    nondeterministic: tuple[str, ...] = ()
    contracts: bool = False
    shares_memory: bool = False
    symbolic: bool = False
    delegates: tuple[str, ...] = ()
    thread_bound: bool = False

    def __new__(cls, **declared: Any) -> Capabilities:
        """Raise a clear error for an unknown field."""
        fields = tuple(cls.__annotations__)
        for name in declared:
            if name not in fields:
                from difflib import get_close_matches

                matches = get_close_matches(name, fields, n=1)
                hint = f"did you mean {matches[0]}?" if matches else f"there are {', '.join(fields)}"
                raise ArgumentError(f"Capabilities: there is no field {name!r}; {hint}")
        return object.__new__(cls)

    def largest_error(self, op: str, dtype: str) -> int | None:
        """The declared error of an op in a dtype, in representable numbers; None if it is not declared.

        >>> Capabilities(ulp={"*.float16": 1}).largest_error("exp", "float16")
        1
        """
        return next((self.ulp[key] for key in _keys(op, dtype) if key in self.ulp), None)

    def why_not(self, op: str, dtype: str) -> str | None:
        """Why the backend does not support an op in a dtype; None if it does.

        >>> Capabilities(dtypes=("float32",)).why_not("exp", "float64")
        'has no float64'
        """
        if dtype not in self.dtypes:
            return f"has no {dtype}"
        return next((self.unsupported[key] for key in _keys(op, dtype) if key in self.unsupported), None)


def _keys(op: str, dtype: str) -> tuple[str, ...]:
    return f"{op}.{dtype}", op, f"*.{dtype}", "*"
