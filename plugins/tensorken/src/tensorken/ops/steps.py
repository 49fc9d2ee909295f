"""`loop`: the loops of bodies, whose carry may be complex."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tensorken.ops.matrices import is_complex
from tensorken_core.language.interpreter import Interpreter

Step = Callable[..., Sequence[Any]]


def loop(
    step: Step, carry: Sequence[Any], inputs: Sequence[Sequence[Any]]
) -> tuple[Sequence[Any], list[Sequence[Any]]]:
    """`RawTensor.loop` at the level of the carry; where that is complex, on the parts of complex tensors.

    In a loop whose first carry is complex, all carries and all outputs are complex.
    """
    run = carry[0].interpreter.loop
    if not is_complex(carry[0]) or not inputs:
        return run(step, carry, inputs)  # type: ignore[no-any-return]
    pairs = (True,) * len(carry) + tuple([_is_pair(x) for x in inputs[0]])
    parts, outputs = run(
        OnParts(step, pairs, carry[0].dtype), _parts(carry), [_parts(given) for given in inputs]
    )
    return _joined(parts), [_joined(ys) for ys in outputs]


@dataclass(frozen=True, slots=True)
class OnParts:
    """A step of a loop on complex tensors as a step on their parts.

    Attributes:
        step: the step.
        pairs: for each of its arguments, whether it is complex.
        dtype: the dtype of the carry.
    """

    step: Step
    pairs: tuple[bool, ...]
    dtype: Any

    @property
    def __name__(self) -> str:
        """The name of the step, for programs."""
        return self.step.__name__

    def __call__(self, *parts: Any) -> list[Any]:
        """The parts of the next carry and of the outputs."""
        rest = iter(parts)
        arguments = [_complex(next(rest), next(rest)) if pair else next(rest) for pair in self.pairs]
        found = self.step(*arguments)
        return _parts([y if is_complex(y) else Interpreter.complex_of(y, self.dtype) for y in found])


def _is_pair(x: Any) -> bool:
    return not isinstance(x, int) and is_complex(x)


def _complex(real: Any, imag: Any) -> Any:
    return Interpreter.complex_type(real, imag)


def _parts(xs: Sequence[Any]) -> list[Any]:
    """The tensors with two real tensors in place of each complex one."""
    return [part for x in xs for part in ((x.real, x.imag) if _is_pair(x) else (x,))]


def _joined(parts: Sequence[Any]) -> list[Any]:
    return [_complex(*parts[i : i + 2]) for i in range(0, len(parts), 2)]
