"""The type of a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tensorken import Tensor
from tensorken_nn.training import Task


class Sampler(Protocol):
    """Draws text from a trained model."""

    @property
    def state(self) -> Any:
        """A state of the same structure as in training, into which to load a checkpoint."""

    def __call__(
        self, state: Any, key: Tensor, prompt: str, count: int, temperature: float, top_k: int | None
    ) -> str:
        """Draw `count` pieces (characters of a text, or names), after the prompt."""


@dataclass(frozen=True, slots=True)
class Job:
    """A ready-made training task.

    Args:
        summary: one line for listings.
        settings: a dataclass whose fields are options (`tensorken_nn.options.option`); one is named `seed`.
        prepare: makes the task from the settings, on the backend in use.
        sampler: makes a sampler from the settings and the task's facts; None if the model draws no text.
        count: the default number of pieces to draw.
    """

    summary: str
    settings: type
    prepare: Callable[[Any], Task]
    sampler: Callable[[Any, Mapping[str, Any]], Sampler] | None = None
    count: int = 20
