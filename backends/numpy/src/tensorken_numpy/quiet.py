"""Floating-point warnings off for our own calls, whatever the caller's settings, and without touching them."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any

import numpy as np


class _Quiet(threading.local):
    """For each thread a context in which numpy ignores floating-point errors; `run` calls a function there.

    numpy keeps its error settings in a context variable, and entering a context costs a fifth of `np.errstate`.
    """

    run: Callable[..., np.ndarray[Any, np.dtype[Any]]]

    def __init__(self) -> None:
        context = contextvars.Context()
        context.run(np.seterr, all="ignore")
        self.run = context.run


quiet = _Quiet()
