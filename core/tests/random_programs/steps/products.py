"""Steps of products and linear algebra; systems and decompositions have well-conditioned operands."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from core.tests.random_programs.draft import COMPLEX, FIELDS, FLOATS, INTS, Draft, Value
from core.tests.random_programs.steps.row import Row

WIDE = ("float64", "float32")
NUMBERS = (*FLOATS, *INTS, *COMPLEX)
SQUARES = ((3, 3), (2, 2), (4, 4), (2, 3, 3))


def pair(text: str, first: tuple[int, ...], second: tuple[int, ...]) -> Callable[[Draft], str]:
    """A product of operands of these shapes."""

    def draw(d: Draft) -> str:
        a = d.pick(NUMBERS, shape=first)
        return text.format(a=a, b=d.pick((a.dtype,), shape=second))

    return draw


def one(text: str, shape: tuple[int, ...]) -> Callable[[Draft], str]:
    """A product of an operand with itself, or a contraction of one."""
    return lambda d: text.format(a=d.pick(NUMBERS, shape=shape))


def _matmul(d: Draft) -> str:
    a = d.pick(NUMBERS, lambda x: x.ndim in (1, 2, 3), shapes=((2, 3), (3, 3), (2, 2, 3), (0, 3), (2, 0)))
    n = a.shape[-1]
    shape = d.choice([(n,), (n, 2), (n, 3), *([(2, n, 2)] if a.ndim == 3 and a.shape[0] in (1, 2) else [])])
    return f"{a} @ {d.pick((a.dtype,), shape=shape)}"


def _dot(name: str) -> Callable[[Draft], str]:
    def draw(d: Draft) -> str:
        a = d.pick(NUMBERS, lambda x: x.ndim == 1)
        return f"xp.{name}({a}, {d.pick((a.dtype,), shape=a.shape)})"

    return draw


def _outer(d: Draft) -> str:
    a = d.pick(NUMBERS, lambda x: x.ndim == 1)
    return f"xp.outer({a}, {d.pick((a.dtype,), lambda x: x.ndim == 1)})"


def _square(d: Draft) -> Value:
    return d.pick(WIDE, lambda x: x.shape in SQUARES, shapes=SQUARES, fine=True)


def regular(d: Draft, x: Value) -> str:
    """A matrix that is far from singular, made of any."""
    n = x.shape[-1]
    return f"(0.3 * xp.tanh({x}) + {d.choice((1.5, 2.0))} * xp.eye({n}, dtype='{x.dtype}'))"


def positive(d: Draft, x: Value) -> str:
    """A symmetric matrix with positive eigenvalues, which are far from one another."""
    n = x.shape[-1]
    return (
        f"(0.05 * xp.tanh({x}) + 0.05 * xp.tanh({x}).mT + xp.diag(xp.arange(1, {n + 1}, dtype='{x.dtype}')))"
    )


def of_regular(text: str) -> Callable[[Draft], str]:
    """Functions of a regular matrix."""

    def draw(d: Draft) -> str:
        return text.format(a=regular(d, _square(d)))

    return draw


def of_positive(text: str) -> Callable[[Draft], str]:
    """Functions of a symmetric positive definite matrix; signs of vectors are removed."""

    def draw(d: Draft) -> str:
        return text.format(a=positive(d, _square(d)))

    return draw


def system(text: str) -> Callable[[Draft], str]:
    """A system with a vector or a matrix on the right."""

    def draw(d: Draft) -> str:
        a = d.pick(WIDE, lambda x: x.shape in SQUARES[:3], shapes=SQUARES[:3], fine=True)
        n = a.shape[-1]
        b = d.pick((a.dtype,), shape=d.choice(((n,), (n, 2), (n, n))), fine=True)
        return text.format(a=regular(d, a), b=b)

    return draw


def _tall(text: str) -> Callable[[Draft], str]:
    def draw(d: Draft) -> str:
        x = d.pick(WIDE, shape=(4, 2), fine=True)
        return text.format(a=f"(0.3 * xp.tanh({x}) + xp.eye(4, 2, dtype='{x.dtype}'))", n=2)

    return draw


def _lstsq(d: Draft) -> str:
    x = d.pick(WIDE, shape=(4, 2), fine=True)
    b = d.pick((x.dtype,), shape=(4,), fine=True)
    return f"xp.linalg.lstsq(0.3 * xp.tanh({x}) + xp.eye(4, 2, dtype='{x.dtype}'), {b})[0]"


def _multi_dot(d: Draft) -> str:
    a = d.pick(FIELDS, shape=(2, 3))
    return f"xp.linalg.multi_dot([{a}, {d.pick((a.dtype,), shape=(3, 3))}, {d.pick((a.dtype,), shape=(3,))}])"


def _three(d: Draft) -> str:
    a = d.pick(FIELDS, shape=(2, 3))
    b, c = d.pick((a.dtype,), shape=(3, 3)), d.pick((a.dtype,), shape=(3,))
    return f"xp.einsum('ij,jk,k->{d.choice(('i', 'ik', 'j', ''))}', {a}, {b}, {c})"


def _triangular(d: Draft) -> str:
    a = d.pick(WIDE, lambda x: x.shape in SQUARES[:3], shapes=SQUARES[:3], fine=True)
    b, lower = d.pick((a.dtype,), shape=(a.shape[-1],), fine=True), d.chance(0.5)
    return f"xp.linalg.solve_triangular({regular(d, a)}, {b}, lower={lower})"


def _rows() -> Iterator[Row]:
    yield Row("matmul", _matmul, weight=3.0, whole=True)
    for name in ("dot", "inner", "vdot", "vecdot"):
        yield Row(name, _dot(name), whole=True)
    yield Row("outer", _outer, whole=True)
    yield Row("dot of matrices", pair("xp.dot({a}, {b})", (2, 3), (3, 3)), whole=True)
    yield Row("inner of matrices", pair("xp.inner({a}, {b})", (2, 3), (3, 3)), whole=True)
    yield Row("vecdot of matrices", pair("xp.vecdot({a}, {b}, axis=0)", (2, 3), (2, 3)), whole=True)
    yield Row("tensordot", pair("xp.tensordot({a}, {b}, 1)", (2, 2, 3), (3, 3)), whole=True)
    yield Row(
        "tensordot of axes", pair("xp.tensordot({a}, {b}, ((0, 2), (0, 1)))", (2, 2, 3), (2, 3)), whole=True
    )
    yield Row("kron", pair("xp.kron({a}, {b})", (2, 3), (3,)), whole=True)
    yield Row("cross", pair("xp.cross({a}, {b})", (2, 3), (2, 3)), whole=True)
    yield Row("einsum contraction", pair("xp.einsum('ij,kj->ki', {a}, {b})", (2, 3), (3, 3)), whole=True)
    yield Row("einsum batch", pair("xp.einsum('bij,bj->bi', {a}, {b})", (2, 2, 3), (2, 3)), whole=True)
    yield Row("einsum outer", pair("xp.einsum('i,j->ji', {a}, {b})", (3,), (4,)), whole=True)
    yield Row("einsum sum", pair("xp.einsum('ij,j->', {a}, {b})", (2, 3), (3,)), whole=True)
    yield Row("einsum ellipsis", pair("xp.einsum('...i,...i->...', {a}, {b})", (2, 2, 3), (2, 3)), whole=True)
    yield Row("einsum trace", one("xp.einsum('ii->', {a})", (3, 3)), whole=True)
    yield Row("einsum diagonal", one("xp.einsum('ii->i', {a})", (3, 3)), exact=True)
    yield Row("einsum of three", _three, whole=True)
    yield Row("sum of products", pair("xp.sum({a} * {b}, axis=-1)", (2, 3), (3,)), weight=2.0, whole=True)
    yield Row("gram", one("{a}.T @ {a}", (2, 3)), whole=True)
    yield Row("trace", one("xp.linalg.trace({a})", (3, 3)), whole=True)
    yield Row("multi_dot", _multi_dot, whole=True)
    for name, text in {
        "inv": "xp.linalg.inv({a})",
        "det": "xp.linalg.det({a})",
        "slogdet": "xp.linalg.slogdet({a})[1]",
        "qr of R": "xp.abs(xp.linalg.qr({a})[1])",
        "qr product": "xp.linalg.qr({a})[0] @ xp.linalg.qr({a})[1]",
        "matrix_power": "xp.linalg.matrix_power({a}, 3)",
        "matrix_power negative": "xp.linalg.matrix_power({a}, -2)",
        "norm fro": "xp.linalg.matrix_norm({a})",
        "norm 1": "xp.linalg.matrix_norm({a}, ord=1)",
        "norm inf": "xp.linalg.matrix_norm({a}, ord=inf)",
        "norm nuc": "xp.linalg.matrix_norm({a}, ord='nuc')",
        "svdvals": "xp.linalg.svdvals({a})",
        "pinv": "xp.linalg.pinv({a})",
    }.items():
        yield Row(name, of_regular(text))
    for name, text in {
        "cholesky": "xp.linalg.cholesky({a})",
        "eigvalsh": "xp.linalg.eigvalsh({a})",
        "eigh values": "xp.linalg.eigh({a})[0]",
        "eigh vectors": "xp.linalg.eigh({a})[1] ** 2",
        "svd values": "xp.linalg.svd({a})[1]",
        "svd vectors": "xp.linalg.svd({a})[0] ** 2",
        "norm 2": "xp.linalg.matrix_norm({a}, ord=2)",
        "condition": "xp.linalg.cond({a})",
    }.items():
        yield Row(name, of_positive(text))
    yield Row("qr of a tall matrix", _tall("xp.abs(xp.linalg.qr({a})[1])"))
    yield Row("pinv of a tall matrix", _tall("xp.linalg.pinv({a})"))
    yield Row("matrix_rank", _tall("xp.linalg.matrix_rank({a})"), smooth=False)
    yield Row("lstsq", _lstsq)
    yield Row("solve", system("xp.linalg.solve({a}, {b})"), weight=2.0)
    yield Row("solve by inv", system("xp.linalg.inv({a}) @ {b}"))
    yield Row("solve_triangular", _triangular)


ROWS = tuple(_rows())
