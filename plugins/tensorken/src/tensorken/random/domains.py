"""The domains of parameters: which numbers a distribution is defined for, by numpy's rules.

Numbers are checked where they are known: outside of traced functions, also under derivatives and vmap.  Where they are
not known, the results for others are NaN, or -1 in integer dtypes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from tensorken.arrays.indexing.checks import require
from tensorken_core.tensor.tensor import Tensor

Domain = tuple[str, Callable[[Any], Tensor]]
"""The text after "must be", and whether numbers belong to the domain."""

NONNEGATIVE: Domain = ("at least 0", lambda x: ~(x < 0))
"""NaN belongs to it, and gives NaN."""

POSITIVE: Domain = ("positive", lambda x: ~(x <= 0))
COUNT: Domain = ("at least 0", lambda x: x >= 0)
PROBABILITY: Domain = ("from 0 to 1", lambda x: (x >= 0) & (x <= 1))
FINITE: Domain = ("finite", lambda x: ~(abs(x) == math.inf))

DOMAINS: Mapping[tuple[str, str], Domain] = {
    ("ball", "p"): POSITIVE,
    ("bernoulli", "p"): PROBABILITY,
    ("beta", "a"): NONNEGATIVE,
    ("beta", "b"): NONNEGATIVE,
    ("binomial", "n"): COUNT,
    ("binomial", "p"): PROBABILITY,
    ("chisquare", "df"): POSITIVE,
    ("choice", "p"): COUNT,
    ("dirichlet", "alpha"): NONNEGATIVE,
    ("double_sided_maxwell", "scale"): NONNEGATIVE,
    ("f", "dfden"): POSITIVE,
    ("f", "dfnum"): POSITIVE,
    ("gamma", "a"): NONNEGATIVE,
    ("generalized_normal", "p"): POSITIVE,
    ("geometric", "p"): PROBABILITY,
    ("loggamma", "a"): NONNEGATIVE,
    ("lognormal", "sigma"): NONNEGATIVE,
    ("multinomial", "n"): COUNT,
    ("multinomial", "p"): COUNT,
    ("pareto", "b"): POSITIVE,
    ("poisson", "lam"): COUNT,
    ("rayleigh", "scale"): NONNEGATIVE,
    ("t", "df"): POSITIVE,
    ("uniform", "maxval"): FINITE,
    ("uniform", "minval"): FINITE,
    ("wald", "mean"): POSITIVE,
    ("weibull_min", "concentration"): NONNEGATIVE,
    ("weibull_min", "scale"): NONNEGATIVE,
}
"""The domain of each parameter that has one, by the function and the name of the parameter."""


def check_domain(name: str, what: str, x: Tensor) -> None:
    """Raise ArgumentError if a number of a parameter is known, and not in its domain.

    >>> import tensorken as tk
    >>> check_domain("poisson", "lam", tk.tensor([1.0, -2.0]))
    Traceback (most recent call last):
    tensorken_core.errors.ArgumentError: poisson: lam must be at least 0, got -2.0
    """
    domain = DOMAINS.get((name, what))
    if domain is not None:
        needed, holds = domain
        require(name, what, holds(x), needed, x)


def check_order(name: str, low: Tensor, high: Tensor, what: str, needed: str) -> None:
    """Raise ArgumentError if a bound is known to be above another."""
    require(name, what, ~(low > high), needed)
