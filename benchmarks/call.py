"""A task in the hands of a library: the call that is timed, and the numbers that are compared."""

from __future__ import annotations

from typing import Any

import numpy as np
from libraries import Library, NotOffered
from tasks import Case

STEPS = 5  # of a training, whose losses are compared


class Call:
    """A call of a task's function by a library, which waits for the result."""

    def __init__(self, case: Case, lib: Library, compiled: bool) -> None:
        self.case, self.lib = case, lib
        function, arguments = case.make(lib)
        self.function = lib.jit(function, case.donates) if compiled else function
        self.arguments = lib.array(arguments)
        self.given = len(case.donates)  # a training step goes on from the one before

    def __call__(self) -> Any:
        result = self.function(*self.arguments)
        self.lib.ready(result)
        if self.given:
            self.arguments = (*result[: self.given], *self.arguments[self.given :])
            return result[self.given :]
        return result

    def numbers(self) -> list[Any]:
        """The arrays of a result; of a training the losses of its first steps, which tell of all that a step does."""
        if self.case.donates:
            return [np.array([self._arrays()[0] for _ in range(STEPS)])]
        return self._arrays()

    def _arrays(self) -> list[Any]:
        return [np.array(self.lib.numpy(x), np.float64) for x in self.lib.leaves(self())]


def offered(case: Case, lib: Library, compiled: bool) -> Call | None:
    """The call, if the library has what the task needs."""
    try:
        return Call(case, lib, compiled)
    except NotOffered:
        return None
