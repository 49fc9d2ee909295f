"""Signatures for the reference, with types as the source writes them: `ArrayLike`, not all that it includes."""

from __future__ import annotations

import inspect
import re
from typing import Any, ForwardRef

EMPTY = inspect.Parameter.empty


def typed(function: Any) -> tuple[str, str]:
    """The parameters of a function or class, and the type of a function's result; empty texts if it has no signature.

    A type `Any` is left out, as it says nothing, and the alias `Function` of core is a `Callable`.

    >>> def f(x: ArrayLike, *, axis: Axis = None, key: Any = 3) -> Tensor: ...
    >>> typed(f)
    ('(x: ArrayLike, *, axis: Axis = None, key=3)', 'Tensor')
    """
    from sphinx.util.inspect import stringify_signature

    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return "", ""
    parameters = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
    shown = [p.replace(annotation=_written(p.annotation)) for p in parameters]
    result = "" if inspect.isclass(function) else _written(signature.return_annotation)
    bare = signature.replace(parameters=shown, return_annotation=EMPTY)
    return stringify_signature(bare), "" if result is EMPTY else str(result)


def _written(annotation: Any) -> Any:
    """A type as the source has it, or nothing."""
    if isinstance(annotation, ForwardRef):
        annotation = annotation.__forward_arg__
    if annotation is EMPTY or annotation is Any or annotation == "Any":
        return EMPTY
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\bFunction\b", "Callable", text)
