"""Cases: expressions that are valid in Tensorken and in JAX, with distributions of their operands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Draw:
    """How to draw an operand: uniformly from an interval, then transformed by `prepare`."""

    shape: Shape
    low: float = -2.0
    high: float = 2.0
    prepare: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class Case:
    """A function of a namespace (Tensorken's or JAX's) and operands, with the compared orders of derivatives."""

    name: str
    expression: Callable[..., Any]
    operands: tuple[Draw, ...]
    orders: int = 2
    tolerance: float = 1e-9


SHAPE: Shape = (2, 3)
SHAPES: dict[str, tuple[Shape, ...]] = dict.fromkeys(("tanh", "abs"), ((), (3,), SHAPE))
"""The shapes for which a unary function is compared; by default only SHAPE, since all functions treat shapes alike."""

PAIR: tuple[Shape, Shape] = ((2, 1), (1, 3))
PAIRS: dict[str, tuple[tuple[Shape, Shape], ...]] = dict.fromkeys(
    ("divide", "maximum"), (((), ()), ((3,), (3,)), ((2, 3), (3,)), PAIR)
)
"""The pairs of shapes for which a binary function is compared; by default only PAIR, which broadcasts both operands."""

UNARY: dict[str, tuple[float, float]] = {
    "abs": (0.1, 2.0),
    "acos": (-0.9, 0.9),
    "acosh": (1.2, 3.0),
    "asin": (-0.9, 0.9),
    "asinh": (-3.0, 3.0),
    "atan": (-3.0, 3.0),
    "atanh": (-0.9, 0.9),
    "ceil": (0.1, 0.9),
    "cos": (-4.0, 4.0),
    "cosh": (-3.0, 3.0),
    "erf": (-3.0, 3.0),
    "erfinv": (-0.9, 0.9),
    "exp": (-3.0, 3.0),
    "exp2": (-3.0, 3.0),
    "expm1": (-3.0, 3.0),
    "floor": (0.1, 0.9),
    "log": (0.2, 4.0),
    "log10": (0.2, 4.0),
    "log1p": (-0.8, 4.0),
    "log2": (0.2, 4.0),
    "negative": (-2.0, 2.0),
    "positive": (-2.0, 2.0),
    "reciprocal": (0.3, 3.0),
    "relu": (0.1, 2.0),
    "round": (0.6, 1.4),
    "sigmoid": (-5.0, 5.0),
    "sign": (0.1, 2.0),
    "sin": (-4.0, 4.0),
    "sinh": (-3.0, 3.0),
    "softplus": (-5.0, 5.0),
    "sqrt": (0.2, 4.0),
    "square": (-2.0, 2.0),
    "tan": (-1.2, 1.2),
    "tanh": (-3.0, 3.0),
    "trunc": (0.1, 0.9),
}
BINARY: dict[str, tuple[tuple[float, float], tuple[float, float]]] = {
    "add": ((-2.0, 2.0), (-2.0, 2.0)),
    "atan2": ((0.3, 2.0), (-2.0, 2.0)),
    "copysign": ((0.3, 2.0), (0.3, 2.0)),
    "divide": ((-2.0, 2.0), (0.3, 2.0)),
    "hypot": ((0.3, 2.0), (0.3, 2.0)),
    "logaddexp": ((-3.0, 3.0), (-3.0, 3.0)),
    "maximum": ((-2.0, 2.0), (-2.0, 2.0)),
    "minimum": ((-2.0, 2.0), (-2.0, 2.0)),
    "multiply": ((-2.0, 2.0), (-2.0, 2.0)),
    "pow": ((0.3, 2.0), (-2.0, 2.0)),
    "remainder": ((2.1, 2.9), (0.9, 1.0)),
    "subtract": ((-2.0, 2.0), (-2.0, 2.0)),
}


def elementwise() -> Iterator[Case]:
    """Every elementwise function, some of them with several shapes."""
    for name, (low, high) in UNARY.items():
        for shape in SHAPES.get(name, (SHAPE,)):
            yield Case(f"{name}-{shape}", lambda xp, x, f=name: getattr(xp, f)(x), (Draw(shape, low, high),))
    for name, (first, second) in BINARY.items():
        for a, b in PAIRS.get(name, (PAIR,)):
            yield Case(
                f"{name}-{a}-{b}",
                lambda xp, x, y, f=name: getattr(xp, f)(x, y),
                (Draw(a, *first), Draw(b, *second)),
            )


REDUCTIONS = ("sum", "mean", "max", "min", "prod", "var", "std", "logsumexp")


def reductions() -> Iterator[Case]:
    """Every reduction over several choices of axes."""
    for name in REDUCTIONS:
        for shape, axis, keepdims in (
            ((3,), None, False),
            ((2, 3), 0, False),
            ((2, 3, 2), (0, 2), True),
            ((2, 3), -1, True),
        ):
            yield Case(
                f"{name}-{shape}-{axis}-{keepdims}",
                lambda xp, x, f=name, a=axis, k=keepdims: getattr(xp, f)(x, axis=a, keepdims=k),
                (Draw(shape, 0.3, 2.0),),
            )
    for name in ("cumsum", "cumprod", "sort", "softmax", "log_softmax"):
        for shape, axis in (((4,), 0), ((2, 3), 0), ((2, 3), -1)):
            yield Case(
                f"{name}-{shape}-{axis}",
                lambda xp, x, f=name, a=axis: getattr(xp, f)(x, axis=a),
                (Draw(shape, 0.3, 2.0),),
            )


MATRIX = Draw((3, 3))
SHAPING: dict[str, tuple[Callable[..., Any], tuple[Draw, ...]]] = {
    "reshape": (lambda xp, x: xp.reshape(x, (3, 2)), (Draw((2, 3)),)),
    "permute_dims": (lambda xp, x: xp.permute_dims(x, (2, 0, 1)), (Draw((2, 3, 4)),)),
    "swapaxes": (lambda xp, x: xp.swapaxes(x, 0, 2), (Draw((2, 3, 4)),)),
    "moveaxis": (lambda xp, x: xp.moveaxis(x, (0, 1), (-1, 0)), (Draw((2, 3, 4)),)),
    "expand_dims": (lambda xp, x: xp.expand_dims(x, axis=1), (Draw((2, 3)),)),
    "squeeze": (lambda xp, x: xp.squeeze(x, axis=1), (Draw((2, 1, 3)),)),
    "broadcast_to": (lambda xp, x: xp.broadcast_to(x, (4, 2, 3)), (Draw((2, 1)),)),
    "broadcast_arrays": (lambda xp, x, y: tuple(xp.broadcast_arrays(x, y)), (Draw((2, 1)), Draw((3,)))),
    "concatenate": (lambda xp, x, y: xp.concatenate([x, y, x], axis=1), (Draw((2, 1)), Draw((2, 3)))),
    "stack": (lambda xp, x, y: xp.stack([x, y], axis=1), (Draw((2, 3)), Draw((2, 3)))),
    "split": (lambda xp, x: tuple(xp.split(x, [1, 3], axis=1)), (Draw((2, 5)),)),
    "unstack": (lambda xp, x: tuple(xp.unstack(x, axis=1)), (Draw((2, 3)),)),
    "flip": (lambda xp, x: xp.flip(x, axis=1), (Draw((2, 3)),)),
    "pad": (lambda xp, x: xp.pad(x, ((1, 0), (2, 1))), (Draw((2, 3)),)),
    "pad-edge": (lambda xp, x: xp.pad(x, ((1, 0), (2, 1)), mode="edge"), (Draw((2, 3)),)),
    "pad-reflect": (lambda xp, x: xp.pad(x, ((1, 0), (2, 1)), mode="reflect"), (Draw((2, 3)),)),
    "tile": (lambda xp, x: xp.tile(x, (2, 3)), (Draw((2, 3)),)),
    "repeat": (lambda xp, x: xp.repeat(x, 2, axis=1), (Draw((2, 3)),)),
    "roll": (lambda xp, x: xp.roll(x, (1, -2), axis=(0, 1)), (Draw((2, 3)),)),
    "tril": (lambda xp, x: xp.tril(x, k=-1), (MATRIX,)),
    "triu": (lambda xp, x: xp.triu(x, k=1), (MATRIX,)),
    "diag": (lambda xp, x: xp.diag(x), (Draw((3,)),)),
    "diagonal": (lambda xp, x: xp.diagonal(x, offset=1), (MATRIX,)),
    "trace": (lambda xp, x: xp.linalg.trace(x), (MATRIX,)),
    "meshgrid": (lambda xp, x, y: tuple(xp.meshgrid(x, y, indexing="ij")), (Draw((2,)), Draw((3,)))),
    "where": (lambda xp, x, y: xp.where(x > 0.0, x * y, y), (Draw((2, 3)), Draw((2, 3)))),
    "clip": (lambda xp, x: xp.clip(x, -0.5, 0.7), (Draw((2, 3)),)),
    "diff": (lambda xp, x: xp.diff(x, axis=1), (Draw((2, 4)),)),
    "ravel": (lambda xp, x: xp.ravel(x), (Draw((2, 3)),)),
    "hstack": (lambda xp, x, y: xp.hstack([x, y]), (Draw((2, 1)), Draw((2, 3)))),
    "vstack": (lambda xp, x, y: xp.vstack([x, y]), (Draw((3,)), Draw((2, 3)))),
    "rot90": (lambda xp, x: xp.rot90(x), (Draw((2, 3)),)),
    "nan_to_num": (lambda xp, x: xp.nan_to_num(x), (Draw((2, 3)),)),
}
PRODUCTS: dict[str, tuple[Callable[..., Any], tuple[Draw, ...]]] = {
    "matmul": (lambda xp, x, y: x @ y, (Draw((2, 3)), Draw((3, 4)))),
    "matmul-vector": (lambda xp, x, y: x @ y, (Draw((3,)), Draw((3, 4)))),
    "matmul-batch": (lambda xp, x, y: xp.matmul(x, y), (Draw((2, 1, 2, 3)), Draw((4, 3, 2)))),
    "dot": (lambda xp, x, y: xp.dot(x, y), (Draw((2, 3)), Draw((2, 3, 4)))),
    "vdot": (lambda xp, x, y: xp.vdot(x, y), (Draw((2, 3)), Draw((2, 3)))),
    "inner": (lambda xp, x, y: xp.inner(x, y), (Draw((2, 3)), Draw((4, 3)))),
    "outer": (lambda xp, x, y: xp.outer(x, y), (Draw((3,)), Draw((4,)))),
    "vecdot": (lambda xp, x, y: xp.vecdot(x, y), (Draw((2, 3)), Draw((3,)))),
    "kron": (lambda xp, x, y: xp.kron(x, y), (Draw((2, 2)), Draw((2, 3)))),
    "cross": (lambda xp, x, y: xp.cross(x, y), (Draw((2, 3)), Draw((2, 3)))),
    "tensordot": (lambda xp, x, y: xp.tensordot(x, y, axes=2), (Draw((2, 3, 4)), Draw((3, 4, 2)))),
    "tensordot-axes": (
        lambda xp, x, y: xp.tensordot(x, y, axes=((0, 2), (1, 0))),
        (Draw((2, 3, 4)), Draw((4, 2, 3))),
    ),
    **{
        f"einsum-{subscripts}": (
            lambda xp, *xs, s=subscripts: xp.einsum(s, *xs),
            tuple(Draw(shape) for shape in shapes),
        )
        for subscripts, shapes in {
            "ij,jk->ik": ((2, 3), (3, 4)),
            "bij,bjk->bik": ((2, 2, 3), (2, 3, 4)),
            "ii->i": ((3, 3),),
            "ii": ((3, 3),),
            "ij->ji": ((2, 3),),
            "i,j,k->ijk": ((2,), (3,), (2,)),
            "...ij,...j->...i": ((2, 2, 3), (3,)),
            "ij,jk,kl->il": ((2, 3), (3, 4), (4, 2)),
            "iij,jk->ik": ((2, 2, 3), (3, 2)),
        }.items()
    },
}
INDEXING: dict[str, tuple[Callable[..., Any], tuple[Draw, ...]]] = {
    "int": (lambda xp, x: x[1], (Draw((3, 4)),)),
    "slices": (lambda xp, x: x[::-2, 1:3], (Draw((5, 4)),)),
    "new-axis": (lambda xp, x: x[..., None, 1], (Draw((3, 4)),)),
    "array": (lambda xp, x: x[xp.asarray([2, 0, 2])], (Draw((3, 4)),)),
    "negative-array": (lambda xp, x: x[:, xp.asarray([-1, 0])], (Draw((3, 4)),)),
    "arrays": (lambda xp, x: x[xp.asarray([[0], [2]]), xp.asarray([1, 3])], (Draw((3, 4)),)),
    "split-arrays": (lambda xp, x: x[xp.asarray([0, 2]), :, xp.asarray([1, 0])], (Draw((3, 4, 2)),)),
    "at-set": (lambda xp, x, y: x.at[1].set(y), (Draw((3, 4)), Draw((4,)))),
    "at-set-array": (lambda xp, x, y: x.at[xp.asarray([2, 0])].set(y), (Draw((3, 4)), Draw((2, 4)))),
    "at-add": (lambda xp, x, y: x.at[xp.asarray([2, 0, 2])].add(y), (Draw((3, 4)), Draw((3, 4)))),
    "at-multiply": (lambda xp, x, y: x.at[1:3].multiply(y), (Draw((3, 4)), Draw((2, 4)))),
    "at-min": (lambda xp, x, y: x.at[xp.asarray([2, 0])].min(y), (Draw((3, 4)), Draw((2, 4)))),
    "at-max": (lambda xp, x, y: x.at[xp.asarray([2, 0, 2])].max(y), (Draw((3, 4)), Draw((3, 4)))),
    "take": (lambda xp, x: xp.take(x, xp.asarray([1, 1, 0]), axis=1), (Draw((2, 3)),)),
    "take_along_axis": (
        lambda xp, x: xp.take_along_axis(x, xp.asarray([[2, 0], [1, 1]]), axis=1),
        (Draw((2, 3)),),
    ),
}


def _positive(x: Any) -> Any:
    """A well-conditioned positive definite matrix."""
    import numpy as np

    return x @ np.swapaxes(x, -1, -2) + 2.0 * np.eye(x.shape[-1])


def _separated(x: Any) -> Any:
    """A matrix whose eigenvalues and singular values are well separated."""
    import numpy as np

    n, m = x.shape[-2:]
    return x * 0.2 + np.eye(n, m) * (1.0 + np.arange(m))


def symmetrized(x: Any) -> Any:
    """The symmetric part, so that derivatives do not depend on the triangle that a routine reads."""
    return (x + x.mT) / 2.0


LINALG: dict[str, tuple[Callable[..., Any], tuple[Draw, ...]]] = {
    "inv": (lambda xp, x: xp.linalg.inv(x), (Draw((3, 3), prepare=_separated),)),
    "inv-batch": (lambda xp, x: xp.linalg.inv(x), (Draw((2, 3, 3), prepare=_separated),)),
    "det": (lambda xp, x: xp.linalg.det(x), (Draw((3, 3), prepare=_separated),)),
    "slogdet": (lambda xp, x: xp.linalg.slogdet(x)[1], (Draw((3, 3), prepare=_separated),)),
    "solve": (lambda xp, x, y: xp.linalg.solve(x, y), (Draw((3, 3), prepare=_separated), Draw((3, 2)))),
    "solve-vector": (lambda xp, x, y: xp.linalg.solve(x, y), (Draw((3, 3), prepare=_separated), Draw((3,)))),
    "cholesky": (lambda xp, x: xp.linalg.cholesky(symmetrized(x)), (Draw((3, 3), prepare=_positive),)),
    "qr": (lambda xp, x: tuple(xp.linalg.qr(x)), (Draw((4, 3), prepare=_separated),)),
    "svd": (lambda xp, x: svd_without_signs(xp, x), (Draw((4, 3), prepare=_separated),)),
    "svdvals": (lambda xp, x: xp.linalg.svdvals(x), (Draw((3, 4), prepare=_separated),)),
    "eigh": (lambda xp, x: eigh_without_signs(xp, symmetrized(x)), (Draw((3, 3), prepare=_separated),)),
    "eigvalsh": (lambda xp, x: xp.linalg.eigvalsh(symmetrized(x)), (Draw((3, 3), prepare=_separated),)),
    "pinv": (lambda xp, x: xp.linalg.pinv(x), (Draw((4, 3), prepare=_separated),)),
    "matrix_power": (lambda xp, x: xp.linalg.matrix_power(x, 3), (MATRIX,)),
    "matrix_power-negative": (
        lambda xp, x: xp.linalg.matrix_power(x, -2),
        (Draw((3, 3), prepare=_separated),),
    ),
    **{
        f"norm-{order}": (lambda xp, x, o=order: xp.linalg.norm(x, ord=o), (Draw((4,)),))
        for order in (None, 1, 2, 3, float("inf"), float("-inf"))
    },
    **{
        f"matrix-norm-{order}": (
            lambda xp, x, o=order: xp.linalg.norm(x, ord=o),
            (Draw((3, 3), prepare=_separated),),
        )
        for order in ("fro", "nuc", 1, 2, float("inf"))
    },
    "vector_norm": (lambda xp, x: xp.linalg.vector_norm(x, axis=1), (Draw((2, 3)),)),
}


def svd_without_signs(xp: Any, x: Any) -> Any:
    """The parts of a singular value decomposition that do not depend on the signs of the vectors."""
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    return s, (u * s) @ vh, u * u, vh * vh


def eigh_without_signs(xp: Any, x: Any) -> Any:
    """The parts of an eigendecomposition that do not depend on the signs of the vectors."""
    values, vectors = xp.linalg.eigh(x)
    return values, vectors * vectors


MIXED: dict[str, tuple[Callable[..., Any], tuple[Draw, ...]]] = {
    "mlp": (
        lambda xp, x, w, v: xp.log_softmax(xp.tanh(x @ w) @ v, axis=-1),
        (Draw((2, 3)), Draw((3, 4)), Draw((4, 3))),
    ),
    "layer-norm": (
        lambda xp, x, g: (x - x.mean(-1, keepdims=True)) / xp.sqrt(x.var(-1, keepdims=True) + 1e-5) * g,
        (Draw((2, 4)), Draw((4,))),
    ),
    "attention": (
        lambda xp, q, k, v: xp.softmax(q @ k.mT / 2.0 + xp.tril(xp.ones((3, 3), dtype=q.dtype)), axis=-1) @ v,
        (Draw((2, 3, 4)), Draw((2, 3, 4)), Draw((2, 3, 4))),
    ),
    "rosenbrock": (
        lambda xp, x: ((1.0 - x[:-1]) ** 2 + 100.0 * (x[1:] - x[:-1] ** 2) ** 2).sum(),
        (Draw((4,)),),
    ),
    "gaussian": (
        lambda xp, x, c: -0.5 * (x @ xp.linalg.solve(c, x)) - 0.5 * xp.linalg.slogdet(c)[1],
        (Draw((3,)), Draw((3, 3), prepare=_positive)),
    ),
    "distances": (
        lambda xp, x, y: xp.sqrt(((x[:, None] - y[None]) ** 2).sum(-1)),
        (Draw((2, 3)), Draw((4, 3), 3.0, 5.0)),
    ),
}


def all_cases() -> list[Case]:
    """Every case of this file."""
    tables = {
        "shaping": SHAPING,
        "products": PRODUCTS,
        "indexing": INDEXING,
        "linalg": LINALG,
        "mixed": MIXED,
    }
    cases = [*elementwise(), *reductions()]
    for group, table in tables.items():
        tolerance = 1e-7 if group == "linalg" else 1e-9
        cases += [
            Case(f"{group}-{name}", expression, operands, tolerance=tolerance)
            for name, (expression, operands) in table.items()
        ]
    return cases
