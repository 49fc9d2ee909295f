"""Names that tensors have only in other libraries: reading one is an error that names the equivalent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from tensorken.arrays.elsewhere.names import NAMES
from tensorken_core.tensor.tensor import Tensor

OTHERS = (
    *(
        "addressable_data",
        "addressable_shards",
        "asnumpy",
        "assign",
        "block_until_ready",
        "count",
        "extend",
        "get",
    ),
    *("head", "iloc", "itemset", "loc", "map", "newbyteorder", "on_device_size_in_bytes", "set", "sharding"),
    *("to_numpy", "weak_type"),
)
"""The names of methods that equivalents.txt adds to those of PyTorch and numpy: of arrays of JAX and of tables."""


class NameElsewhere(str):
    """The descriptor of a name that tensors have only in other libraries.

    A `__getattr__` of Tensor would need no descriptors, but it makes every read of an attribute five times as slow in
    Python 3.11.
    """

    __slots__ = ()

    def __get__(self, x: Any, owner: type | None = None) -> NoReturn:
        from tensorken.arrays.elsewhere.table import missing

        raise missing("a tensor", "x", str(self), x)


def attach(functions: Iterable[str]) -> None:
    """Let reading a name of a method of another library, or of a function of this one, name the equivalent."""
    names = {*NAMES["torch.Tensor"].split(), *NAMES["numpy.ndarray"].split(), *OTHERS, *functions}
    for name in names.difference(dir(Tensor)):
        setattr(Tensor, name, NameElsewhere(name))
