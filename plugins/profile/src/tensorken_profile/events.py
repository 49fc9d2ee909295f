"""Event: something that a backend did, when, for how long, with what and for whom."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from tensorken_core.language.op import Op
from tensorken_core.source_line import Origin
from tensorken_profile.costs import MOVEMENT, Kind, arithmetic, size_in_bytes

Category = Literal["op", "program", "trace", "prepare", "data"]

TITLES = {"trace": "trace ", "prepare": "prepare "}
"""What stands before the name where an event is no run of what it names, but makes that."""

Facts = tuple[Any, ...]
"""What an Event is made of, in that order: noting that is faster than making one."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a backend did.

    Attributes:
        name: of the op or program; of data, the backend's method: `new`, `full`, `ravel`, `realize`.
        category: "op"; "program", a call of one; "trace", the tracing of a function; "prepare", the optimisation and
            compilation of a program before its first call; "data", what goes to the backend and comes back.
        start: when it began, in nanoseconds since the profile did.
        duration: how long it took, in nanoseconds, with all that it led to.
        own: how much of that was not spent in other events, nor by the profiler.
        thread: the number of the thread.
        line: the user's line; None if there is none.
        pulled: in a backward pass, the op whose cotangent was computed.
        operands: the shape and dtype of each.
        results: the shape and dtype of each.
        op: the op; None for data.
        params: the op's.
        whole: whether all was done in this event, so that no other event shows a part of it.
        views: whether the backend's results may be views of operands.
    """

    name: str
    category: Category
    start: int
    duration: int
    own: int
    thread: int
    line: Origin | None = None
    pulled: str | None = None
    operands: tuple[Kind, ...] = ()
    results: tuple[Kind, ...] = ()
    op: Op | None = None
    params: tuple[Any, ...] = ()
    whole: bool = True
    views: bool = False

    @property
    def title(self) -> str:
        """The name, with what sets apart the making of a program from its runs."""
        return TITLES.get(self.category, "") + self.name

    def since(self, began: int) -> Event:
        """The same, its start counted from another one."""
        return replace(self, start=self.start - began)

    @property
    def flop(self) -> int:
        """How many operations on elements it did, by `tensorken_profile.costs`; 0 if other events show them."""
        if self.op is None or not self.whole or self.category in TITLES:
            return 0
        shapes = [[shape for shape, _ in kinds] for kinds in (self.operands, self.results)]
        return arithmetic(self.op, shapes[0], self.params, shapes[1])

    @property
    def is_movement(self) -> bool:
        """Whether its results may be views of its operands."""
        return self.views and self.name in MOVEMENT

    @property
    def bytes(self) -> int:
        """How many bytes it read and wrote, if it did each once; 0 if other events show that."""
        if not self.whole or self.category in TITLES or self.is_movement:
            return 0
        return size_in_bytes(self.operands) + size_in_bytes(self.results)
