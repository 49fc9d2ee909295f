"""A task run by a library: the call to time, and the numbers to compare."""

from __future__ import annotations

from typing import Any

import numpy as np
from libraries import Library, NotSupported
from tasks import Case

STEPS = 5  # training steps whose losses are compared


class Call:
    """A call of a task's function by a library, including waiting for the result."""

    def __init__(self, case: Case, lib: Library, compiled: bool) -> None:
        self.case, self.lib = case, lib
        function, arguments = case.make(lib)
        self.function = lib.jit(function, case.donates) if compiled else function
        self.arguments = lib.array(arguments)
        self.given = len(case.donates)  # each training step continues from the previous one

    def __call__(self) -> Any:
        result = self.function(*self.arguments)
        self.lib.ready(result)
        if self.given:
            self.arguments = (*result[: self.given], *self.arguments[self.given :])
            return result[self.given :]
        return result

    def numbers(self) -> list[Any]:
        """The arrays of a result; for training, the losses of the first steps, which depend on all parts of a step."""
        if self.case.donates:
            return [np.array([self._arrays()[0] for _ in range(STEPS)])]
        return self._arrays()

    def _arrays(self) -> list[Any]:
        return [np.array(self.lib.numpy(x), np.float64) for x in self.lib.leaves(self())]


def supported_call(case: Case, lib: Library, compiled: bool) -> Call | None:
    """The call; None if the library does not support the task."""
    try:
        return Call(case, lib, compiled)
    except NotSupported:
        return None
