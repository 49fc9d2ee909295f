"""Drawing: how hypothesis is run, inside a worker process: the same draws for a seed on every machine, and no files.

By itself hypothesis mixes numbers into its draws that it finds in the source of the modules at hand, and keeps them in
a folder where it runs; so it draws from a provider of ours, by the interface that it has for such.  A failure ends the
search: programs are made smaller by what they mean (reducing.py), which takes fewer runs than by what was drawn.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, settings, strategies
from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, PrimitiveProvider

_SEED: ContextVar[str] = ContextVar("seed", default="")


class Provider(PrimitiveProvider):
    """Draws of hypothesis from a generator that is seeded for one law and case."""

    lifetime = "test_function"

    def __init__(self, conjecturedata: Any, /) -> None:
        super().__init__(conjecturedata)
        self._random = random.Random(_SEED.get())

    def draw_boolean(self, p: float = 0.5) -> bool:
        """True with probability p."""
        return self._random.random() < p

    def draw_integer(
        self,
        min_value: int | None = None,
        max_value: int | None = None,
        *,
        weights: dict[int, float] | None = None,
        shrink_towards: int = 0,
    ) -> int:
        """A number between the ends, each as likely as another."""
        low = -(2**31) if min_value is None else min_value
        return self._random.randint(low, max(low, 2**31) if max_value is None else max_value)

    def draw_float(self, **constraints: Any) -> float:
        """Laws draw no floats."""
        raise NotImplementedError("the laws of this kit draw whole numbers alone")

    def draw_string(self, *args: Any, **constraints: Any) -> str:
        """Laws draw no strings."""
        raise NotImplementedError("the laws of this kit draw whole numbers alone")

    def draw_bytes(self, *args: Any, **constraints: Any) -> bytes:
        """Laws draw no bytes."""
        raise NotImplementedError("the laws of this kit draw whole numbers alone")


_NAME = "tensorken-conformance"
AVAILABLE_PROVIDERS[_NAME] = f"{__name__}.Provider"


def settings_for(examples: int, steps: int = 50) -> settings:
    """The settings of hypothesis for a law: nothing is stored, printed or timed."""
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        backend=_NAME,
        database=None,
        deadline=None,
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,),
        verbosity=Verbosity.quiet,
    )


class Found(BaseException):
    """Ends a search with what was found; not an Exception, which hypothesis would look into.

    Attributes:
        what: was found.
    """

    def __init__(self, what: Any) -> None:
        super().__init__(what)
        self.what = what


def searched(seed: str, run: Callable[[], Any]) -> Any:
    """Run hypothesis with draws from a seed; what was found, or None."""
    token = _SEED.set(seed)
    try:
        run()
    except Found as found:
        return found.what
    finally:
        _SEED.reset(token)
    return None


@functools.cache
def _below(n: int) -> Any:
    return strategies.integers(0, n - 1)


def search(seed: str, examples: int, check: Callable[[Callable[[int], int]], None]) -> Any:
    """Call a function with draws again and again, until it raises Found.

    Args:
        seed: of the draws.
        examples: how often it is called.
        check: is given a function that draws a number below another.

    Returns:
        What was found, or None.
    """

    def test(data: Any) -> None:
        check(lambda n: data.draw(_below(n)) if n > 1 else 0)

    return searched(seed, given(strategies.data())(settings_for(examples)(test)))
