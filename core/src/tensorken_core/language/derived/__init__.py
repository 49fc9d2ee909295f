"""The derived ops: own derivative rules, and a default body in other ops that a backend may override.

A body obeys the same laws as an override: signed zeros, infinities and NaN come out as in a direct implementation,
and the result is within 4 units in the last place where the ops that every backend must have are.
"""

from __future__ import annotations

from tensorken_core.language.derived.arithmetic import Arithmetic
from tensorken_core.language.derived.arrangement import Arrangement
from tensorken_core.language.derived.ciphers import Ciphers
from tensorken_core.language.derived.elementary import Elementary
from tensorken_core.language.derived.exponential_sums import ExponentialSums
from tensorken_core.language.derived.factorizations import Factorizations
from tensorken_core.language.derived.norms import Norms
from tensorken_core.language.derived.systems import Systems
from tensorken_core.language.interpreter import R


class Derived(
    Arithmetic[R],
    Elementary[R],
    Arrangement[R],
    ExponentialSums[R],
    Norms[R],
    Systems[R],
    Factorizations[R],
    Ciphers[R],
):
    """Ops that can be said in others."""
