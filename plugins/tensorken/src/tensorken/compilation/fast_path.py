"""Fast path: reuse the executable of the last call if every leaf has the same interpreter, shape and dtype."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from tensorken.compilation.donation import Donated, donate
from tensorken.compilation.static_arguments import StaticArguments
from tensorken.programs.execution import Run
from tensorken_core.rewriting.wrapper import DonatableArgs
from tensorken_core.transforms.arguments import Static

_facts = attrgetter("interpreter", "_shape", "_dtype")
_representation = attrgetter("representation")


@dataclass(frozen=True, slots=True)
class RecentCall:
    """The last call of a jitted function on a backend.

    Attributes:
        unpack: from the positional arguments that are not static, and the keywords, to their leaves.
        static: the static arguments by index or name.
        facts: for each leaf the backend, the shape and the dtype.
        donated: the indices of donated leaves.
        donated_level: the level of donated tensors after the call; None if there are none.
        run: from representations of the leaves to those of the results.
        result: from these to the function's result.
    """

    unpack: Callable[[Any], list[Any] | None]
    static: StaticArguments
    facts: list[tuple[Any, ...]]
    donated: Sequence[int]
    donated_level: Donated | None
    run: Run
    result: Callable[[Sequence[Any]], Any]

    def match(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> DonatableArgs | None:
        """The arguments of `run` if a call is like this one, else None; donated tensors of the call are then
        invalid.
        """
        varying: Sequence[Any] = arguments
        if self.static:
            rest, keywords = list(arguments), dict(keywords)
            for i, value in reversed(self.static):
                if isinstance(i, str):
                    if i not in keywords or Static(keywords.pop(i)) != value:
                        return None
                elif i >= len(rest) or Static(rest.pop(i)) != value:
                    return None
            varying = tuple(rest)
        leaves = self.unpack((varying, keywords))
        if leaves is None:
            return None
        try:
            if [*map(_facts, leaves)] != self.facts:
                return None
        except AttributeError:  # a leaf is not a tensor
            return None
        run_arguments = DonatableArgs(map(_representation, leaves))
        if self.donated_level is not None:
            donate([leaves[i] for i in self.donated], self.donated_level)
        return run_arguments
