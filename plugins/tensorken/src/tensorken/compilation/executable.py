"""Executables: the programs of a jitted function, the functions that run them, and their cache keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tensorken.compilation.static_arguments import StaticArguments
from tensorken.programs.execution import Run
from tensorken_core import tree
from tensorken_core.language.dtypes import DType
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.levels.batch import Axis
from tensorken_core.program.program import Program
from tensorken_core.tensor.tensor import Tensor


@dataclass(frozen=True, slots=True)
class CacheKey:
    """The properties of arguments that determine which program runs.

    Attributes:
        structure: of the pair of the positional arguments that are not static, and the keywords.
        static: the static arguments by index or name.
        base: the backend.
        types: for each leaf the shape and dtype.
        axes: the named axes of enclosing transforms.
        numbers: the indices of the leaves that are Python numbers, which take the dtypes of tensors.
    """

    structure: tree.Structure
    static: StaticArguments
    base: Any
    types: tuple[tuple[Shape, DType], ...]
    axes: tuple[Axis, ...] = ()
    numbers: tuple[int, ...] = ()


@dataclass(slots=True)
class Executable:
    """A program, and the function that runs it on its backend.

    Attributes:
        program: the program.
        extra: captured tensors of enclosing transforms, which are further inputs.
        types: for each result the shape and dtype.
        result: the structure of the results.
        donated: the indices of the donated leaves.
        run: from representations of the leaves to representations of the results; None before the first run.
        fast_calls: the generated functions that call the program, by the Python types of the leaves.
    """

    program: Program
    extra: list[Tensor]
    types: list[tuple[Shape, DType]]
    result: tree.Structure
    donated: tuple[int, ...] = ()
    run: Run | None = None
    fast_calls: dict[tuple[type, ...], Callable[..., Any]] = field(default_factory=dict)

    def result_of(self, ys: Sequence[Any], backend: RawTensor[Any]) -> Any:
        """The function's result, from representations on the backend."""
        tensors = [Tensor(backend, y, shape, dtype) for y, (shape, dtype) in zip(ys, self.types, strict=True)]
        return tree.unflatten(self.result, tensors)
