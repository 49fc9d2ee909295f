"""Arguments that are impossible: refused where their values are known, by one line that names the function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorken as tk
from core.tests.each import each_of
from tensorken_core.errors import TensorkenError

KEY = tk.random.key(0)
NAN, INF = tk.nan, tk.inf

DISTRIBUTIONS: dict[str, tuple[tuple[float, ...], dict[int, tuple[float, ...]]]] = {
    "ball": ((2, 1.0), {1: (0.0, -1.0)}),
    "bernoulli": ((0.5,), {0: (-0.1, 1.1, NAN)}),
    "beta": ((1.0, 1.0), {0: (-1.0,), 1: (-1.0,)}),
    "binomial": ((5.0, 0.5), {0: (-1.0, NAN), 1: (-0.1, 1.1, NAN)}),
    "chisquare": ((1.0,), {0: (0.0, -1.0)}),
    "double_sided_maxwell": ((0.0, 1.0), {1: (-1.0,)}),
    "f": ((1.0, 1.0), {0: (0.0, -1.0), 1: (0.0, -1.0)}),
    "gamma": ((1.0,), {0: (-1.0,)}),
    "generalized_normal": ((1.0,), {0: (0.0, -1.0)}),
    "geometric": ((0.5,), {0: (-0.1, 1.1, NAN)}),
    "loggamma": ((1.0,), {0: (-1.0,)}),
    "lognormal": ((1.0,), {0: (-1.0,)}),
    "pareto": ((1.0,), {0: (0.0, -1.0)}),
    "poisson": ((1.0,), {0: (-1.0, NAN)}),
    "rayleigh": ((1.0,), {0: (-1.0,)}),
    "t": ((1.0,), {0: (0.0, -1.0)}),
    "triangular": ((0.0, 1.0, 2.0), {0: (1.5,), 1: (-1.0, 3.0), 2: (0.5,)}),
    "truncated_normal": ((-1.0, 1.0), {0: (2.0,), 1: (-2.0,)}),
    "wald": ((1.0,), {0: (0.0, -1.0)}),
    "weibull_min": ((1.0, 1.0), {0: (-1.0,), 1: (-1.0,)}),
}
"""For each distribution its parameters, and for each of them impossible numbers."""


@each_of("name", DISTRIBUTIONS)
def test_a_distribution_is_defined_for_its_domain(name: str) -> None:
    draw: Callable[..., Any] = getattr(tk.random, name)
    possible, impossible = DISTRIBUTIONS[name]
    draw(KEY, *possible)
    for i, numbers in impossible.items():
        for number in numbers:
            wrong = [*possible]
            wrong[i] = number
            calls: list[Callable[[], Any]] = [lambda wrong=wrong: draw(KEY, *wrong)]
            if name != "ball":
                xs = tk.tensor([possible[i], number])
                calls.append(
                    lambda wrong=wrong, i=i, xs=xs: draw(KEY, *wrong[:i], xs, *wrong[i + 1 :], shape=(2,))
                )
                calls.append(
                    lambda wrong=wrong, i=i, xs=xs: tk.vmap(
                        lambda x: draw(KEY, *wrong[:i], x, *wrong[i + 1 :])
                    )(xs)
                )
            for call in calls:
                with pytest.raises(TensorkenError, match=rf"^{name}: [^\n]* must be [^\n]*$"):
                    call()
            if name != "ball":  # an unknown number is not checked
                tk.jit(lambda x, wrong=wrong, i=i: draw(KEY, *wrong[:i], x, *wrong[i + 1 :]))(number)


x = tk.tensor([1.0, 2.0, 3.0])
CALLS: list[tuple[str, Callable[[], Any]]] = [
    ("choice", lambda: tk.random.choice(KEY, 10, (5,), replace=False, p=[1.0] + [0.0] * 9)),
    *[
        ("choice", lambda p=p: tk.random.choice(KEY, 2, (5,), p=p))
        for p in ([-1.0, 2.0], [NAN, 1.0], [0.0, 0.0], [INF, 1.0])
    ],
    ("choice", lambda: tk.vmap(lambda p: tk.random.choice(KEY, 2, p=p))(tk.tensor([[0.5, 0.5], [0.0, 0.0]]))),
    ("categorical", lambda: tk.random.categorical(KEY, tk.log([1.0, 0.0, 0.0]), shape=(2,), replace=False)),
    ("categorical", lambda: tk.random.categorical(KEY, [0.0, NAN])),
    ("dirichlet", lambda: tk.random.dirichlet(KEY, tk.tensor([-1.0, 1.0]))),
    ("multinomial", lambda: tk.random.multinomial(KEY, -1, [0.5, 0.5])),
    *[
        ("multinomial", lambda p=p: tk.random.multinomial(KEY, 3, p))
        for p in ([-0.5, 1.5], [0.0, 0.0], [INF, 1.0])
    ],
    ("randint", lambda: tk.random.randint(KEY, (3,), 5, 5)),
    ("randint", lambda: tk.random.randint(KEY, (3,), tk.tensor([1, 2, 3]), 3)),
    ("uniform", lambda: tk.random.uniform(KEY, (3,), minval=2.0, maxval=1.0)),
    ("uniform", lambda: tk.random.uniform(KEY, (3,), maxval=INF)),
    ("uniform", lambda: tk.random.uniform(KEY, (3,), minval=tk.tensor([0.0, -INF, 0.0]))),
    ("bincount", lambda: tk.bincount([1, 2], minlength=-1)),
    ("bincount", lambda: tk.bincount([1, 2], length=-1)),
    ("bincount", lambda: tk.bincount([1, 2], length=2.5)),  # type: ignore[arg-type]
    *[("histogram", lambda r=r: tk.histogram(x, 3, r)) for r in ((2, 1), (0, NAN), (0, INF), (-INF, 0))],
    ("histogram", lambda: tk.histogram(x, tk.tensor([3.0, 2.0, 1.0]))),
    ("histogram", lambda: tk.histogram(tk.tensor([1.0, NAN]), 3)),
    ("average", lambda: tk.average(x, weights=[0.0, 0.0, 0.0])),
    (
        "average",
        lambda: tk.average(tk.ones((2, 3)), 1, weights=tk.tensor([[1.0, 0.0, 0.0], [1.0, -1.0, 0.0]])),
    ),
    ("cov", lambda: tk.cov(x, fweights=[-1, 1, 1])),
    ("cov", lambda: tk.cov(x, fweights=[1.5, 1.0, 1.0])),
    ("cov", lambda: tk.cov(x, aweights=[-1.0, 1.0, 1.0])),
    ("cov", lambda: tk.cov(x, ddof=1.5)),  # type: ignore[arg-type]
    ("var", lambda: tk.var(x, ddof="1")),  # type: ignore[arg-type]
    ("round", lambda: tk.round(x, 1.5)),  # type: ignore[arg-type]
    ("geomspace", lambda: tk.geomspace(tk.ones(3), 2.0, 3)),
]


@each_of(("name", "call"), CALLS)
def test_an_impossible_argument_is_refused(name: str, call: Callable[[], Any]) -> None:
    with pytest.raises(TensorkenError, match=rf"^{name}: [^\n]*$"):
        call()


def test_only_what_is_possible_is_chosen() -> None:
    p = tk.tensor([0.0, 1.0, 0.0, 2.0, 0.0])
    for seed in range(20):
        assert sorted(tk.random.choice(tk.random.key(seed), 5, (2,), replace=False, p=p).tolist()) == [1, 3]
        assert set(tk.random.choice(tk.random.key(seed), 5, (50,), p=p).tolist()) == {1, 3}
