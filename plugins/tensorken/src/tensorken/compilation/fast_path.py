"""Recent calls: a call of a jitted function that is like the last one is recognised by one look at each leaf."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from tensorken.compilation.donation import Donated, give_away
from tensorken.compilation.static_arguments import StaticArguments
from tensorken_core.host.loading import Run
from tensorken_core.rewriting.wrapper import DonatableArgs
from tensorken_core.transforms.arguments import Static

_facts = attrgetter("interpreter", "_shape", "_dtype")
_representation = attrgetter("representation")


@dataclass(frozen=True, slots=True)
class RecentCall:
    """A call on a backend.

    Attributes:
        unpack: from the positional arguments that vary, and the keywords, to their leaves.
        static: the places or names of the other arguments, and what they were.
        facts: of each leaf the backend, the shape and the dtype.
        donated: the places of the leaves that were given away.
        gone: what such tensors live on afterwards; None if there are none.
        run: from representations of the leaves to those of the results.
        result: from these to what the function returns.
    """

    unpack: Callable[[Any], list[Any] | None]
    static: StaticArguments
    facts: list[tuple[Any, ...]]
    donated: Sequence[int]
    gone: Donated | None
    run: Run
    result: Callable[[Sequence[Any]], Any]

    def given(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> DonatableArgs | None:
        """What `run` takes, if a call is like this one, whose donated tensors are gone from then on; else None."""
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
        except AttributeError:  # a leaf is no tensor
            return None
        given = DonatableArgs(map(_representation, leaves))
        if self.gone is not None:
            give_away([leaves[i] for i in self.donated], self.gone)
        return given
