"""Turn numpy's functions into methods; functions that may warn run with numpy's floating-point warnings off.

The caller's settings for such warnings have no effect and do not change.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorken_numpy.arrays import Array


def method(function: Callable[..., Any]) -> Callable[..., Array]:
    """A method of an interpreter that calls the function on its operands and params.

    >>> class Backend:
    ...     neg = method(np.negative)
    >>> float(Backend().neg(np.float32(2)))
    -2.0
    """

    def call(interpreter: Any, *args: Any) -> Array:
        result: Array = function(*args)
        return result

    return call


class _Quiet(threading.local):
    """One context per thread in which numpy ignores floating-point errors.

    numpy keeps its error settings in a context variable, and entering a context costs a fifth of `np.errstate`.

    Attributes:
        run: `run(function, *args)` calls the function in that context.
    """

    run: Callable[..., Array]

    def __init__(self) -> None:
        context = contextvars.Context()
        context.run(np.seterr, all="ignore")
        self.run = context.run

    def method(self, function: Callable[..., Any]) -> Callable[..., Array]:
        """A method like that of `method`, for a function that may warn: it runs in that context.

        >>> class Backend:
        ...     exp = quiet.method(np.exp)
        >>> float(Backend().exp(np.float32(1000)))
        inf
        """

        def call(interpreter: Any, *args: Any) -> Array:
            return self.run(function, *args)

        return call


quiet = _Quiet()
