"""Random numbers have the named distributions, and keys are independent.

The keys are fixed, so a test that passes always does.  Each bound is one that true randomness would pass 999 times in
1000; a defect such as a constant bit, a wrong tail or a shared counter misses it by far.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.support import FUSED, array

pytestmark = pytest.mark.slow

COUNT = 100_000
KEYS = tuple(tk.random.split(tk.random.key(2011, backend=FUSED), 16))


def kolmogorov_smirnov(x: Any, distribution: Callable[[Any], Any]) -> float:
    """sqrt(n) times the largest distance of the empirical from a distribution; 1.95 is exceeded once in 1000.

    A number stands for all that are rounded to it, such as those that underflow to 0.
    """
    x = np.asarray(x)
    values, counts = np.unique(x.astype("float64") if x.dtype.kind == "i" else x, return_counts=True)
    shares = np.cumsum(counts) / x.size
    before, after = (
        np.nextafter(values, values.dtype.type(end)).astype("float64") for end in (-math.inf, math.inf)
    )
    above = (shares - distribution(after)).max()
    below = (distribution(before) - (shares - counts / x.size)).max()
    return float(math.sqrt(x.size) * max(above, below))


def chi_squared(counts: Any, chances: Any) -> float:
    """Pearson's statistic as a standard normal number; 3.1 is exceeded once in 1000.

    E. B. Wilson and M. M. Hilferty, "The distribution of chi-square", 1931.
    """
    counts, chances = np.asarray(counts, "float64").ravel(), np.asarray(chances, "float64").ravel()
    expected = counts.sum() * chances
    freedom = len(counts) - 1
    statistic = ((counts - expected) ** 2 / expected).sum()
    spread = 2.0 / (9.0 * freedom)
    return float(((statistic / freedom) ** (1 / 3) - (1.0 - spread)) / math.sqrt(spread))


def equally(counts: Any) -> float:
    return chi_squared(counts, np.full(np.size(counts), 1.0 / np.size(counts)))


normal_below = np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2.0)))


def between(low: float, high: float) -> Callable[[Any], Any]:
    """The normal distribution cut off at both ends."""
    first, last = normal_below(low), normal_below(high)
    return lambda x: (normal_below(x) - first) / (last - first)


DISTRIBUTIONS: dict[str, tuple[Callable[..., Any], Callable[[Any], Any]]] = {
    "uniform": (tk.random.uniform, lambda x: x),
    "uniform between": (
        lambda *args: tk.random.uniform(*args, minval=-3.0, maxval=5.0),
        lambda x: (x + 3.0) / 8.0,
    ),
    "normal": (tk.random.normal, normal_below),
    "exponential": (tk.random.exponential, lambda x: -np.expm1(-x)),
    "gumbel": (tk.random.gumbel, lambda x: np.exp(-np.exp(-x))),
    "truncated_normal": (
        lambda key, *args: tk.random.truncated_normal(key, -0.5, 2.0, *args),
        between(-0.5, 2.0),
    ),
    "truncated_normal tail": (
        lambda key, *args: tk.random.truncated_normal(key, 2.0, math.inf, *args),
        between(2.0, math.inf),
    ),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_numbers_have_their_distribution(name: str, dtype: str) -> None:
    draw, distribution = DISTRIBUTIONS[name]
    for key in KEYS[:3]:
        x = array(draw(key, (COUNT // 4,), dtype))
        assert kolmogorov_smirnov(x, distribution) < 1.95
        assert kolmogorov_smirnov(x, lambda x: np.clip(distribution(x) + 0.02, 0.0, 1.0)) > 1.95


def test_normal_numbers_have_their_moments_and_tails() -> None:
    x = array(tk.random.normal(KEYS[0], (4 * COUNT,))).astype("float64")
    n = x.size
    assert abs(x.mean()) < 3.3 / math.sqrt(n)
    assert abs((x**2).mean() - 1.0) < 3.3 * math.sqrt(2.0 / n)
    assert abs((x**3).mean()) < 3.3 * math.sqrt(15.0 / n)
    assert abs((x**4).mean() - 3.0) < 3.3 * math.sqrt(96.0 / n)
    for bound in (1.0, 2.0, 3.0, 4.0):
        chance = math.erfc(bound / math.sqrt(2.0))
        assert abs((np.abs(x) > bound).sum() - n * chance) < 3.3 * math.sqrt(n * chance)


@pytest.mark.parametrize(("dtype", "bits"), [("int32", 32), ("int64", 64)])
def test_every_bit_is_fair_and_so_are_all_pairs_of_them(dtype: str, bits: int) -> None:
    words = array(tk.random.bits(KEYS[1], (COUNT // 8,), dtype)).view(f"uint{bits}")
    ones = (words[:, None] >> np.arange(bits, dtype=words.dtype) & 1).astype("float64") * 2.0 - 1.0
    n = len(ones)
    limit = 4.5 / math.sqrt(n)  # of thousands of pairs, one may be beyond 3.3
    assert np.abs(ones.mean(0)).max() < limit
    for other in (ones, np.roll(ones, 1, 0), np.roll(ones, 2, 0)):
        product = ones.T @ other / n
        if other is ones:
            product -= np.eye(bits)
        assert np.abs(product).max() < limit


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize(("low", "high"), [(0, 7), (-5, 5), (0, 64), (-500, 500)])
def test_integers_are_equally_likely(low: int, high: int, dtype: str) -> None:
    x = array(tk.random.randint(KEYS[2], (COUNT,), low, high, dtype))
    assert equally(np.bincount(x - low, minlength=high - low)) < 3.1


def test_large_ranges_of_integers_are_not_biased() -> None:
    """Of 3 * 2**30 integers a remainder of 32 bits would give the first third twice as often."""
    x = array(tk.random.randint(KEYS[3], (COUNT,), -(2**31), 2**30)).astype("int64")
    assert equally(np.bincount((x + 2**31) // 2**30, minlength=3)) < 3.1
    x = array(tk.random.randint(KEYS[3], (COUNT,), -(2**63), 2**62, "int64"))
    assert equally(np.bincount((x // 2**62 + 2).astype("int64"), minlength=3)) < 3.1


def test_truth_has_its_probability() -> None:
    for key, p in zip(KEYS, (0.001, 0.1, 0.3, 0.5, 0.9), strict=False):
        true = tk.random.bernoulli(key, p, (COUNT,)).sum().item()
        assert abs(true - COUNT * p) < 3.3 * math.sqrt(COUNT * p * (1.0 - p))


def test_categories_have_their_probabilities() -> None:
    logits = tk.tensor([0.0, 1.0, -1.0, 2.0, -math.inf, 0.5], backend=FUSED)
    chances = np.exp(array(logits))
    kept = chances > 0
    x = array(tk.random.categorical(KEYS[4], logits, shape=(COUNT,)))
    counts = np.bincount(x, minlength=6)
    assert counts[4] == 0
    assert chi_squared(counts[kept], chances[kept] / chances.sum()) < 3.1
    y = array(tk.random.choice(KEYS[5], 6, (COUNT,), p=tk.exp(logits)))
    counts = np.bincount(y, minlength=6)
    assert counts[4] == 0
    assert chi_squared(counts[kept], chances[kept] / chances.sum()) < 3.1


def places(orders: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """How often each row occurs."""
    return np.unique(orders, axis=0, return_counts=True)[1]


def test_all_orders_are_equally_likely() -> None:
    keys = tk.random.split(KEYS[6], 6000)
    counts = places(array(tk.vmap(lambda key: tk.random.permutation(key, 4))(keys)))
    assert len(counts) == 24
    assert equally(counts) < 3.1
    rows = tk.tensor(np.tile(np.arange(4, dtype=np.int32), (6000, 1)), backend=FUSED)
    counts = places(array(tk.random.permutation(KEYS[7], rows, 1, independent=True)))
    assert len(counts) == 24
    assert equally(counts) < 3.1


def test_choices_without_replacement_have_the_probabilities_of_drawing_one_by_one() -> None:
    p = np.array([0.5, 0.3, 0.2], "float32")
    keys = tk.random.split(KEYS[8], 6000)
    weights = tk.tensor(p, backend=FUSED)
    draw = tk.vmap(lambda key: tk.random.choice(key, 3, (2,), replace=False, p=weights))
    pairs = array(draw(keys))
    expected = {(a, b): p[a] * p[b] / (1.0 - p[a]) for a in range(3) for b in range(3) if a != b}
    counts = [int(((pairs[:, 0] == a) & (pairs[:, 1] == b)).sum()) for a, b in expected]
    assert chi_squared(counts, list(expected.values())) < 3.1


def test_streams_of_many_keys_are_uncorrelated() -> None:
    """Keys of split and of fold_in, of neighbouring seeds, and a key and its children."""
    key = KEYS[9]
    normal = tk.vmap(lambda key: tk.random.normal(key, (5000,)))
    steps = tk.arange(20, backend=FUSED)
    families = [
        tk.random.split(key, 20),
        tk.vmap(tk.random.fold_in, in_axes=(None, 0))(key, steps),
        tk.vmap(tk.random.key)(steps),
        key.reshape((1, 2)),
    ]
    rows = np.concatenate([array(normal(keys)) for keys in families])
    correlation = np.corrcoef(rows) - np.eye(len(rows))
    assert np.abs(correlation).max() < 4.5 / math.sqrt(5000)


def test_numbers_are_uncorrelated_with_those_that_follow() -> None:
    x = array(tk.random.uniform(KEYS[10], (COUNT,), "float64")) - 0.5
    for lag in (1, 2, 3, 1024, 2048, 4096, 65_536):
        product = (x[lag:] * x[:-lag]).mean() * 12.0
        assert abs(product) < 3.3 / math.sqrt(COUNT - lag), lag
