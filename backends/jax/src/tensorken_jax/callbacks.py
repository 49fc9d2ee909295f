"""Opaque ops as callbacks of JAX: XLA calls their Python code while a computation runs, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import jax
import numpy as np
from jax.experimental import io_callback

from tensorken_core.language.op import Op
from tensorken_core.language.raw import RawTensor
from tensorken_jax.placement import movable

_jax: Any = jax  # some of its functions have no types

_errors: ContextVar[list[Exception] | None] = ContextVar("tensorken_jax_errors", default=None)
"""Where callbacks that are traced now keep their exceptions; None outside of `awaited`."""


def run_opaque(backend: RawTensor[Any], op: Op, operands: Sequence[Any], params: tuple[Any, ...]) -> Any:
    """Call the op's body from XLA; what has an effect runs once and in order, and so do collectives of processes."""
    shapes = op.shape(*[x.shape for x in operands], *params)
    dtypes = op.dtype(*[backend.dtype(x) for x in operands], *params)
    if op.results == 1:
        shapes, dtypes = (shapes,), (dtypes,)
    types = [_jax.ShapeDtypeStruct(s, dtype.name) for s, dtype in zip(shapes, dtypes, strict=True)]
    errors = _errors.get()
    body: Any = op.body

    def call(*arrays: Any) -> tuple[Any, ...]:
        with jax.enable_x64(True), _keeping(None):  # XLA calls from a thread of its own
            try:
                ys = body(backend, *[backend.tensor_type(backend, x) for x in arrays], *params)
                if op.results == 1:
                    ys = (ys,)
                return tuple([np.asarray(y.representation) for y in ys])
            except Exception as error:
                if errors is not None:
                    errors.append(error)
                raise

    if op.opaque == "pure" and op.collective is None:
        ys = jax.pure_callback(call, types, *operands)
    else:
        ys = io_callback(call, types, *operands, ordered=True)
    return ys[0] if op.results == 1 else tuple(ys)


def is_awaited() -> bool:
    """Whether a computation with callbacks is being traced or run."""
    return _errors.get() is not None


def awaited(run: Callable[[], Any], errors: list[Exception]) -> Any:
    """The results of a computation with callbacks, after all of these; an exception of a callback is raised as itself.

    Args:
        run: traces or runs the computation.
        errors: the exceptions of its callbacks; the same list at each run.
    """
    with _keeping(errors):
        try:
            results = _jax.tree.map(movable, _jax.block_until_ready(run()))
            _jax.effects_barrier()
        except Exception:
            if errors:
                raise errors.pop(0) from None
            raise
        finally:
            errors.clear()
    return results


@contextmanager
def _keeping(errors: list[Exception] | None) -> Iterator[None]:
    token = _errors.set(errors)
    try:
        yield
    finally:
        _errors.reset(token)
