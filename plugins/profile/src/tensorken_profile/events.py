"""Events: the recorded operations of a backend."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from tensorken.programs.costs import MOVEMENT_OPS, ShapeDtype, flop_count, size_in_bytes
from tensorken_core.language.op import Op
from tensorken_core.source_line import Origin

Category = Literal["op", "program", "trace", "prepare", "data"]

TITLES = {"trace": "trace ", "prepare": "prepare "}
"""Prefixes of the titles of events that trace or prepare a program."""

EventFields = tuple[Any, ...]
"""The fields of an Event as a tuple, which is faster to create while recording."""


@dataclass(frozen=True, slots=True)
class Event:
    """A recorded operation of a backend.

    Attributes:
        name: of the op or program; for data transfers, the backend's method: `new`, `full`, `ravel`, `realize`.
        category: "op"; "program", a call of a program; "trace", the tracing of a function; "prepare", the optimisation
            and compilation of a program before its first call; "data", a transfer to or from the backend.
        start: nanoseconds since the start of the profile.
        duration: nanoseconds, including nested events.
        self_time: nanoseconds, without nested events and the profiler.
        thread: the number of the thread.
        line: the user's line; None if there is none.
        derivative_of: in a backward pass, the name of the op whose cotangent was computed.
        operands: the shapes and dtypes of the operands.
        results: the shapes and dtypes of the results.
        op: the op; None for data transfers.
        params: the params of the op.
        is_leaf: whether no nested event computes a part of it.
        views: whether the backend's results may be views of operands.
    """

    name: str
    category: Category
    start: int
    duration: int
    self_time: int
    thread: int
    line: Origin | None = None
    derivative_of: str | None = None
    operands: tuple[ShapeDtype, ...] = ()
    results: tuple[ShapeDtype, ...] = ()
    op: Op | None = None
    params: tuple[Any, ...] = ()
    is_leaf: bool = True
    views: bool = False

    @property
    def title(self) -> str:
        """The name, with a prefix if the event traces or prepares a program."""
        return TITLES.get(self.category, "") + self.name

    def relative_to(self, start: int) -> Event:
        """The event with its start relative to a time."""
        return replace(self, start=self.start - start)

    @property
    def flop(self) -> int:
        """The number of operations on elements, by `tensorken.programs.costs`; 0 if nested events count them."""
        if self.op is None or not self.is_leaf or self.category in TITLES:
            return 0
        shapes = [[shape for shape, _ in shape_dtypes] for shape_dtypes in (self.operands, self.results)]
        return flop_count(self.op, shapes[0], self.params, shapes[1])

    @property
    def is_movement(self) -> bool:
        """Whether its results may be views of its operands."""
        return self.views and self.name in MOVEMENT_OPS

    @property
    def bytes(self) -> int:
        """The bytes read and written, each once; 0 if nested events count them."""
        if not self.is_leaf or self.category in TITLES or self.is_movement:
            return 0
        return size_in_bytes(self.operands) + size_in_bytes(self.results)
