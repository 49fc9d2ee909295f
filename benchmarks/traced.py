"""What compiled functions cost: every task of tasks.py, by us and by each library that is installed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from harness import Workload
from libraries import LIBRARIES
from tasks import TASKS, Case

OURS = "tensorken"


def installed(names: Sequence[str]) -> dict[str, Any]:
    """The adapters of those libraries that are installed."""
    found = {}
    for name in names:
        try:
            found[name] = LIBRARIES[name]()
        except ImportError:
            print(f"{name} is not installed")
    return found


def workloads(peers: Sequence[str]) -> Iterator[Workload]:
    """A workload for each task and each peer."""
    libraries = installed([OURS, *peers])
    for case in TASKS.values():
        for peer in peers:
            if peer in libraries:
                ours, theirs = Call(case, libraries[OURS]), Call(case, libraries[peer])
                if theirs.possible:
                    yield Workload(case.name, peer, ours, theirs, numbers, case.tolerance)


class Call:
    """A call of a task's function by a library, which waits for the result; built at the first."""

    def __init__(self, case: Case, lib: Any) -> None:
        self.case, self.lib = case, lib
        self._function: Any = None
        self._state: Any = None

    @property
    def possible(self) -> bool:
        """Whether the library has all that the task needs."""
        return self.case.make(self.lib)[0] is not None

    def __call__(self) -> Any:
        lib, given = self.lib, len(self.case.donates)
        if self._function is None:
            function, arguments = self.case.make(lib)
            self._function, self._state = lib.jit(function, self.case.donates), lib.array(arguments)
        result = self._function(*self._state)
        lib.ready(result)
        if given:  # a training step: the next one goes on from here
            self._state = (*result[:given], *self._state[given:])
            result = result[given:]
        return lib, result


def numbers(result: Any) -> list[float]:
    """At most a thousand of the numbers of a result, spread evenly, and their sum of squares."""
    lib, tree = result
    flat = np.concatenate([np.ravel(x).astype(np.float64) for x in lib.numbers(tree)])
    step = max(1, len(flat) // 1000)
    return [float(v) for v in flat[::step]]
