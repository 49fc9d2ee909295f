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
from tensorken.random.counts import binomial, geometric, multinomial, poisson
from tensorken.random.distributions import (
    bernoulli,
    exponential,
    gumbel,
    normal,
    truncated_normal,
    uniform,
)
from tensorken.random.gammas import (
    ball,
    beta,
    chisquare,
    dirichlet,
    f,
    gamma,
    generalized_normal,
    loggamma,
    t,
)
from tensorken.random.integers import randint
from tensorken.random.keys import fold_in, key, split
from tensorken.random.transformations import (
    cauchy,
    double_sided_maxwell,
    laplace,
    logistic,
    lognormal,
    maxwell,
    pareto,
    rademacher,
    rayleigh,
    triangular,
    wald,
    weibull_min,
)
from tensorken.random.vectors import multivariate_normal, orthogonal

if not _typing.TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """The error for an unknown name; for a name of another library it names the equivalent."""
        from tensorken.arrays.elsewhere.table import missing

        raise missing("module 'tensorken.random'", "tk.random", name, _sys.modules[__name__])


__all__ = [
    "ball",
    "bernoulli",
    "beta",
    "binomial",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "dirichlet",
    "double_sided_maxwell",
    "exponential",
    "f",
    "fold_in",
    "gamma",
    "generalized_normal",
    "geometric",
    "gumbel",
    "key",
    "laplace",
    "loggamma",
    "logistic",
    "lognormal",
    "maxwell",
    "multinomial",
    "multivariate_normal",
    "normal",
    "orthogonal",
    "pareto",
    "permutation",
    "poisson",
    "rademacher",
    "randint",
    "rayleigh",
    "split",
    "t",
    "triangular",
    "truncated_normal",
    "uniform",
    "wald",
    "weibull_min",
]
