"""What a job is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tensorken import Tensor
from tensorken_nn.training import Task


class Sampler(Protocol):
    """What draws from a model that was trained: text."""

    @property
    def state(self) -> Any:
        """A state of the structure that the training's has, for a checkpoint to be read into."""

    def __call__(
        self, state: Any, key: Tensor, prompt: str, count: int, temperature: float, top_k: int | None
    ) -> str:
        """Draw `count` pieces (characters of a text, or names), after the prompt."""


@dataclass(frozen=True, slots=True)
class Job:
    """Something to train.

    Args:
        summary: a few words for listings.
        settings: a dataclass whose fields are options (`tensorken_nn.options.option`); one is named `seed`.
        prepare: from the settings to the task, on the backend in use.
        sampler: from the settings and the task's facts to what draws from the model, if anything can be drawn.
        count: how many pieces are drawn where nobody says.
    """

    summary: str
    settings: type
    prepare: Callable[[Any], Task]
    sampler: Callable[[Any, Mapping[str, Any]], Sampler] | None = None
    count: int = 20
