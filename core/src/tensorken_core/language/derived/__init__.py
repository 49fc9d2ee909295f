"""The derived ops: ops with their own derivative rules and a default body in other ops, which a backend may override.

A body obeys the same laws as an override: signed zeros, infinities and NaN are as in a direct implementation, and the
error is at most 4 units in the last place if the errors of the required ops are.
"""

from __future__ import annotations

from tensorken_core.language.derived.arithmetic import Arithmetic
from tensorken_core.language.derived.arrangement import Arrangement
from tensorken_core.language.derived.ciphers import Ciphers
from tensorken_core.language.derived.elementary import Elementary
from tensorken_core.language.derived.exponential_sums import ExponentialSums
from tensorken_core.language.derived.norms import Norms
from tensorken_core.language.interpreter import R


class Derived(
    Arithmetic[R],
    Elementary[R],
    Arrangement[R],
    ExponentialSums[R],
    Norms[R],
    Ciphers[R],
):
    """Ops with a body in terms of other ops."""
