"""disable_jit: within its block, jitted functions, loops and conds run in Python, op by op, on values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["disable_jit"]

_disabled: ContextVar[bool] = ContextVar("tensorken_jit_disabled", default=False)
jit_is_disabled = _disabled.get
"""Whether `disable_jit` is on in this thread or task."""


@contextmanager
def disable_jit(disable: bool = True) -> Iterator[None]:
    """Within the block, jitted functions run op by op, so that `print`, `if` and a debugger see values.

    The functions passed to `tk.scan`, `tk.fori_loop`, `tk.while_loop` and `tk.cond` run in Python too.  A loop or cond
    is traced as usual if it depends on a value that is unknown, as inside `tk.trace`, or that differs between the
    examples of `tk.vmap`.  The block affects the current thread or task; `disable_jit` can also decorate a function.

    Args:
        disable: False enables `tk.jit` again within the block.

    >>> import tensorken as tk
    >>> f = tk.jit(lambda x: x if x > 0 else -x)
    >>> with tk.disable_jit():
    ...     f(-3.0).item()
    3.0
    """
    token = _disabled.set(disable)
    try:
        yield
    finally:
        _disabled.reset(token)
