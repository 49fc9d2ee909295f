"""Groups: processes or threads, the members, that run the same program and exchange arrays.

A group passes numpy arrays between its members.  Its author writes `all_gather`; the other methods have definitions by
it, which may be replaced by better ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from tensorken_core.errors import ArgumentError, GroupError
from tensorken_core.host.registry import REGISTRY

DEFAULT_TIMEOUT = 300.0
"""The time in seconds that a member waits for the others by default."""

LABEL_BYTES = 192
"""The size of the text that tells the other members which collective one has reached."""


class Group(ABC):
    """The members that run a program together, as one of them sees it.

    All arrays are numpy arrays in C order; those of all members have one shape and dtype.  A method returns when it has
    the arrays of all members that it needs; its argument is read-only, and may change afterwards.  If some member does
    not call it within `timeout`, or has died, it raises.

    Attributes:
        size: the number of members.
        rank: the number of this member, from 0.
        timeout: the time in seconds that a member waits for the others.

    >>> import tensorken as tk
    >>> class Alone(tk.distributed.Group):
    ...     size, rank = 1, 0
    ...
    ...     def all_gather(self, x):
    ...         return x[None]
    >>> tk.spread(lambda x: tk.psum(x, "workers"), Alone())(2.0).item()
    2.0
    """

    size: int
    rank: int
    timeout: float = DEFAULT_TIMEOUT

    @abstractmethod
    def all_gather(self, x: Any) -> Any:
        """The arrays of all members, stacked along a new first axis in the order of their ranks."""

    def all_reduce(self, x: Any, reduction: str) -> Any:
        """The elementwise "sum", "max" or "min" of the arrays of all members, with the same bits on each."""
        return ufunc_of(reduction).reduce(self.all_gather(x), axis=0, dtype=x.dtype)

    def all_to_all(self, x: Any) -> Any:
        """The rows number `rank` of the arrays of all members, which have `size` rows."""
        return self.all_gather(x)[:, self.rank]

    def permute(self, x: Any, pairs: Sequence[tuple[int, int]]) -> Any:
        """The array of the member `source` for the pair (source, rank) among the pairs; zeros if there is none."""
        rows = self.all_gather(x)
        for source, target in pairs:
            if target == self.rank:
                return rows[source]
        return import_module("numpy").zeros_like(x)

    def close(self) -> None:  # noqa: B027 -- many groups have nothing to do
        """Leave the group."""

    # ---- checked calls ---------------------------------------------------------------------------------------

    _calls = 0
    _failure: str | None = None

    def collective(self, name: str, x: Any, axis_name: Any, *params: Any) -> Any:
        """The result of a collective such as "psum", which all members must have reached.

        A failure ends the group: each later collective raises.

        Raises:
            GroupError: if a member has reached another collective, has ended, or does not answer in time.
        """
        if self._failure is not None:
            raise GroupError(f"{name}: the group has failed before: {self._failure}")
        numpy = import_module("numpy")
        x = numpy.ascontiguousarray(x).reshape(x.shape)
        self._calls += 1
        what = " ".join([name, *map(str, params), "of", x.dtype.name, str(x.shape)])
        text = f"{what} over {axis_name!r}, call {self._calls} of {self.size} members"
        label = numpy.frombuffer(text.encode()[:LABEL_BYTES].ljust(LABEL_BYTES), numpy.uint8)
        try:
            labels = self.all_gather(label)
            if (labels == label).all():
                y = numpy.asarray(self._exchange(name, x, *params))
                return y.copy() if numpy.may_share_memory(x, y) else y
        except Exception as error:
            self._failure = " ".join(str(error).split()) or type(error).__name__
            self.close()
            raise GroupError(
                f"{name}: member {self.rank} of {self.size} got no answer from all others within {self.timeout:g} s, "
                f"or one has ended: {self._failure}"
            ) from error
        texts = [bytes(row).decode(errors="replace").strip() for row in labels]
        other = next(i for i, row in enumerate(labels) if (row != label).any())
        calls = f"member {self.rank} calls {text}, member {other} calls {texts[other]}"
        self._failure = f"the members run different programs: {calls}"
        self.close()
        raise GroupError(
            f"{name}: {self._failure}; call the same collectives in the same order on all members"
        )

    def _exchange(self, name: str, x: Any, *params: Any) -> Any:
        if name in ("psum", "pmax", "pmin"):
            return self.all_reduce(x, name[1:])
        if name == "ppermute":
            return self.permute(x, *params)
        return self.all_gather(x) if name == "all_gather" else self.all_to_all(x)


def ufunc_of(reduction: str) -> Any:
    """The function of numpy for "sum", "max" or "min"."""
    return getattr(import_module("numpy"), {"sum": "add", "max": "maximum", "min": "minimum"}[reduction])


def join(name: str, **options: Any) -> Group:
    """Join a group of an installed plugin, such as "gloo" (of tensorken-torch) or "mpi" (of tensorken-mpi).

    Every member calls it.  It returns when all have.

    Args:
        name: the name of the group.
        options: options of the plugin; all take `timeout`, in seconds.

    Raises:
        ArgumentError: if no plugin has a group of that name.
        GroupError: if not all members join in time.

    >>> import tensorken as tk
    >>> tk.distributed.join("pigeons")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tensorken_core.errors.ArgumentError: distributed.join: no plugin has a group named 'pigeons'; ...
    """
    REGISTRY.load_plugins()
    makers = dict(REGISTRY.hook.tensorken_group())
    if name not in makers:
        known = ", ".join(map(repr, sorted(makers))) or "none"
        raise ArgumentError(
            f"distributed.join: no plugin has a group named {name!r}; there are {known}; install tensorken-torch for "
            f"'gloo', tensorken-mpi for 'mpi'"
        )
    group: Group = makers[name](**options)
    return group
