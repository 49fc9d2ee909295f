"""The functions among the scenarios: common functions to differentiate, written with the public API.

Each takes its variables, then its constants (indices and conditions), and creates tensors only from its operands, so
that it runs on their backend.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import tensorken as tk
from tensorken_conformance.subject import Array
from tensorken_core.language.op import OPS
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Written:
    """A function, its variables and its constants.

    Attributes:
        call: of the variables, then the constants.
        shapes: of the variables.
        constants: integers and conditions, as they are.
        domain: where the variables are drawn.
        prepare: puts special values among them.
        crossing: whether it is not smooth at the point, though its derivative there is decided.
    """

    call: Callable[..., Tensor]
    shapes: tuple[Shape, ...]
    constants: tuple[Array, ...] = ()
    domain: tuple[float, float] = (-1.5, 1.5)
    prepare: Callable[..., list[Array]] | None = None
    crossing: bool = False


def _places(*numbers: int) -> tuple[Array, ...]:
    return (np.array(numbers, np.int32),)


def _layer_norm(x: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
    centred = x - x.mean(-1, keepdims=True)
    return centred / tk.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-3) * gain + bias


def _cross_entropy(x: Tensor, labels: Tensor) -> Tensor:
    rows, classes = x.shape
    flat = tk.log_softmax(x, axis=-1).reshape((rows * classes,))
    picked: Tensor = flat.gather(labels, 0)
    return -picked.mean()


def _logsumexp(x: Tensor) -> Tensor:
    top = tk.stop_gradient(x.max(-1, keepdims=True))
    result: Tensor = tk.log(tk.exp(x - top).sum(-1, keepdims=True)) + top
    return result


def _convolution(x: Tensor, kernel: Tensor) -> Tensor:
    """The sum over the elements of the kernel of the padded image, shifted and scaled."""
    height, width = x.shape
    wide, total = x.pad(((1, 1), (1, 1))), x * 0.0
    for i in range(3):
        for j in range(3):
            total = total + wide[i : i + height, j : j + width] * kernel[i, j]
    return total


def _guarded(x: Tensor) -> Tensor:
    """log and sqrt where they are defined, evaluated at 1 elsewhere, so that no derivative is infinite."""
    positive = x > 0.0
    safe = tk.where(positive, x, 1.0)
    return tk.where(positive, tk.log(safe) * tk.sqrt(safe), x * x)


def _horner(x: Tensor, coefficients: Tensor) -> Tensor:
    total = coefficients[0] + x * 0.0
    for i in range(1, 5):
        total = total * x + coefficients[i]
    return total


def _attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return tk.softmax(q @ k.mT / 2.0, axis=-1) @ v


def _recurrence(h: Tensor, w: Tensor, x: Tensor) -> Tensor:
    for i in range(3):
        h = tk.tanh(h @ w + x[i])
    return h


def _with_zeros(x: Array) -> list[Array]:
    """Rows with one zero, with two, and with none."""
    x[0, 1] = x[1, 0] = x[1, 2] = 0.0
    return [x]


def _with_ties(x: Array) -> list[Array]:
    """In each row, the largest number once, twice or four times."""
    x[0, 0] = x[0, 2] = 1.75
    x[1, :] = -0.5
    return [x]


def _at_the_origin(a: Array, b: Array) -> list[Array]:
    """Powers of 0, from the second on: the mixed second derivative of the first is infinite."""
    return [np.array([0.0, 0.0, 1.0, 1.0, 0.5]), np.array([2.0, 3.0, 0.0, 1.0, -2.0])]


def _around_zero(x: Array) -> list[Array]:
    x[0, 0] = x[1, 2] = 0.0
    return [x]


def _apart(*xs: Array) -> list[Array]:
    """Matrices with different large numbers on their diagonals, which makes them well conditioned."""
    a, *rest = xs
    return [a + np.eye(*a.shape) * 6.0 * np.arange(1, a.shape[-1] + 1), *rest]


FUNCTIONS: dict[str, Written] = {
    "matmul-chain": Written(lambda a, b, c: (a @ b) @ c, ((2, 3), (3, 4), (4, 2))),
    "matmul-batched": Written(lambda a, b: a @ b, ((2, 1, 2, 3), (2, 3, 2))),
    "matmul-vectors": Written(lambda a, m, b: (a @ m) * (m @ b).sum(), ((2,), (2, 3), (3,))),
    "einsum": Written(lambda a, b: tk.einsum("bij,kj->bki", a, b), ((2, 3, 2), (2, 2))),
    "polynomial-of-matrices": Written(lambda a: a @ a @ a - 2.0 * (a @ a.mT), ((2, 2),)),
    "cross-entropy": Written(_cross_entropy, ((3, 4),), _places(2, 5, 8)),
    "layer-norm": Written(_layer_norm, ((2, 4), (4,), (4,))),
    "logsumexp-by-hand": Written(_logsumexp, ((2, 3),)),
    "convolution": Written(_convolution, ((3, 4), (3, 3))),
    "gather-scatter": Written(
        lambda x, w, i: (x.gather(i, 0) * w).scatter_add(i, 0, 3), ((3, 2), (4, 2)), _places(2, 0, 2, 1)
    ),
    "where-guarded": Written(_guarded, ((2, 3),)),
    "at-add": Written(lambda x, y, i: x.at[i].add(y * x[0]), ((3, 2), (3, 2)), _places(1, 1, 2)),
    "at-set": Written(lambda x, y: x.at[1].set(y * y) * x, ((3, 2), (2,))),
    "running-sum": Written(lambda x: tk.cumsum(x * x, axis=1) / (1.0 + x[:, :1] ** 2), ((2, 4),)),
    "running-product-with-zeros": Written(lambda x: tk.cumprod(x, axis=1), ((3, 3),), prepare=_with_zeros),
    "product-with-zeros": Written(lambda x: tk.prod(x, axis=1) * x.sum(), ((3, 3),), prepare=_with_zeros),
    "norms": Written(lambda x: x / tk.linalg.vector_norm(x, axis=-1, keepdims=True), ((2, 3),)),
    "relu-network": Written(lambda x, w, b, v: tk.relu(x @ w + b) @ v, ((2, 3), (3, 4), (4,), (4, 1))),
    "relu-at-zero": Written(
        lambda x: tk.relu(x) * x + tk.relu(-x), ((2, 3),), prepare=_around_zero, crossing=True
    ),
    "max-with-ties": Written(
        lambda x: tk.max(x, axis=1) * x[:, 0], ((3, 4),), prepare=_with_ties, crossing=True
    ),
    "pow-at-the-origin": Written(lambda a, b: a**b, ((5,), (5,)), prepare=_at_the_origin, crossing=True),
    "nested-broadcasts": Written(
        lambda a, b, c: (a[:, None] * b + c) / (b * b + 2.0), ((2,), (3,), (2, 1, 1))
    ),
    "horner": Written(_horner, ((2, 2), (5,))),
    "attention": Written(_attention, ((2, 3), (4, 3), (4, 2))),
    "recurrence": Written(_recurrence, ((2, 2), (2, 2), (3, 2))),
    "sorted-weights": Written(lambda x, w: tk.sort(x, axis=-1) * w, ((2, 4), (4,))),
    "strided-views": Written(
        lambda x: tk.concatenate([x[::2, ::-1], tk.roll(x, 1, 0) * 2.0], axis=0) * x[1], ((3, 3),)
    ),
    "elementary": Written(
        lambda x: tk.tanh(x) * tk.exp(-x * x) + tk.sin(3.0 * x) / (1.0 + tk.abs(x)), ((4,),)
    ),
    "least-squares": Written(
        lambda a, b: (a.mT @ a).apply(OPS["solve"], a.mT @ b), ((3, 2), (3, 1)), prepare=_apart
    ),
}
"""The functions by name."""
