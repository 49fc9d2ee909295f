"""Random numbers from keys: without state, the same numbers on every backend and under every transform.

Keys, bits, integers and uniform numbers from [0, 1) are the same to the bit on every machine; numbers of other
distributions, computed with functions such as the logarithm, depend on the rounding of the backend.

Names, arguments and defaults are as in `jax.random`; the numbers differ from JAX's, see docs/random.md.

>>> import tensorken as tk
>>> key = tk.random.key(0)
>>> one, other = tk.random.split(key)
>>> print(f"{tk.random.normal(one, (3,)):.4f}")
[-0.5226 -1.0168  0.6327]
"""

import sys as _sys
import typing as _typing

from tensorken.random.bits import bits
from tensorken.random.choices import categorical, choice, permutation
from tensorken.random.distributions import (
    bernoulli,
    exponential,
    gumbel,
    normal,
    truncated_normal,
    uniform,
)
from tensorken.random.integers import randint
from tensorken.random.keys import fold_in, key, split

if not _typing.TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """The error for an unknown name; it names the equivalent here if another library has the name."""
        from tensorken.arrays.names_elsewhere import RANDOM, missing

        error = missing("module 'tensorken.random'", name, RANDOM)
        raise error or AttributeError(
            f"module 'tensorken.random' has no attribute {name!r}", name=name, obj=_sys.modules[__name__]
        )


__all__ = [
    "bernoulli",
    "bits",
    "categorical",
    "choice",
    "exponential",
    "fold_in",
    "gumbel",
    "key",
    "normal",
    "permutation",
    "randint",
    "split",
    "truncated_normal",
    "uniform",
]
