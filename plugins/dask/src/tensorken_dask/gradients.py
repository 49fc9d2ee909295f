"""Gradients of losses that are sums over shards, and training that averages the states of the shards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorken as tk
from tensorken import Tensor
from tensorken_core import tree
from tensorken_core.errors import ArgumentError
from tensorken_dask.reductions import AnyShards, add, map_reduce


def value_and_grad(
    loss: Callable[..., Any], shards: AnyShards, backend: str = "numpy", *, has_aux: bool = False
) -> Callable[..., tuple[Any, Any]]:
    """A function from parameters to the sum over all shards of a loss, and its gradient.

    The results are added in the order of the shards, so they have the same bits whichever worker computed what.

    Args:
        loss: from parameters, a shard and further arguments to a tensor of shape (); with `has_aux` to a pair of that
            and a tree of tensors or numbers, which are added over the shards, too.
        shards: `Shards` or `InProcess`.
        backend: the name of the backend that workers compute on.
        has_aux: whether the loss returns a pair.

    Returns:
        A function from the parameters, a tree of tensors, and the further arguments to the pair of value and gradient,
        on the backend in use here.

    Raises:
        ClusterError: by the returned function, if the cluster has no workers or has lost its scheduler.

    >>> from tensorken_dask import InProcess
    >>> shards = InProcess(lambda i: tk.tensor([1.0, 2.0]) * i, 3)
    >>> value, gradient = value_and_grad(lambda w, x: (w * x).sum(), shards)(tk.tensor(2.0))
    >>> value.item(), gradient.item()
    (18.0, 9.0)
    """
    return map_reduce(_Compiled(_gradient, loss, has_aux), shards, backend=backend)


def local_steps(
    step: Callable[..., Any], shards: AnyShards, count: int, backend: str = "numpy"
) -> Callable[..., Any]:
    """A function that takes `count` steps from a state on each shard alone, and returns the mean of the states.

    The cluster communicates once in `count` steps.  The result is another one than that of steps with the gradient of
    all shards.

    Args:
        step: from a state, a shard and the number of the step, an int32 tensor from 0 to count - 1, to the next state.
        shards: `Shards` or `InProcess`.
        count: the number of steps.
        backend: the name of the backend that workers compute on.

    Returns:
        A function from a state, a tree of tensors and numbers, to the mean of the states of all shards, on the backend
        in use here.  Its integers and truth values are those of the first shard.

    Raises:
        ArgumentError: if `count` is not positive.
        ClusterError: by the returned function, if the cluster has no workers or has lost its scheduler.

    >>> from tensorken_dask import InProcess
    >>> shards = InProcess(lambda i: tk.tensor(float(i)), 2)
    >>> advance = local_steps(lambda w, x, number: w + (x - w) * 0.5, shards, 2)
    >>> advance(tk.tensor(4.0)).item()  # the states are 1.0 and 1.75
    1.375
    """
    if count < 1:
        raise ArgumentError(f"local_steps: need one step or more, got {count}")
    states = map_reduce(_Compiled(_steps, step, count), shards, _add_states, backend=backend)

    def advance(state: Any) -> Any:
        total, shard_count = states(state)
        return tree.map(lambda x: (x / shard_count).astype(x.dtype) if _is_float(x) else x, total)

    return advance


class _Compiled:
    """A function of shards that is compiled once in each process: `make(*arguments)`."""

    def __init__(self, make: Callable[..., Callable[..., Any]], *arguments: Any) -> None:
        self._arguments = (make, *arguments)
        self._function = make(*arguments)

    def __call__(self, shard: Any, *arguments: Any) -> Any:
        return self._function(shard, *arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Compiled, self._arguments


def _gradient(loss: Callable[..., Any], has_aux: bool) -> Callable[..., Any]:
    compiled = tk.jit(tk.value_and_grad(loss, has_aux=has_aux))
    return lambda shard, parameters, *rest: compiled(parameters, shard, *rest)


def _steps(step: Callable[..., Any], count: int) -> Callable[..., Any]:
    compiled = tk.jit(step)

    def advance(shard: Any, state: Any) -> tuple[Any, int]:
        for number in range(count):
            state = compiled(state, shard, tk.tensor(number, tk.int32))
        return state, 1

    return advance


def _add_states(a: tuple[Any, int], b: tuple[Any, int]) -> tuple[Any, int]:
    """The sums of the floats of two states, and the number of states."""
    return tree.map(lambda x, y: add(x, y) if _is_float(x) else x, a[0], b[0]), a[1] + b[1]


def _is_float(x: Any) -> bool:
    return x.dtype.kind == "float" if isinstance(x, Tensor) else isinstance(x, float)
