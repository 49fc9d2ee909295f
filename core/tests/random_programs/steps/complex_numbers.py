"""Steps on complex numbers: parts, functions, quotients, products, decompositions, Fourier transforms, order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from core.tests.random_programs.draft import COMPLEX, PARTS, Draft
from core.tests.random_programs.steps.elementwise import second_operand
from core.tests.random_programs.steps.row import Row

TAME = "(0.4 * {x} / (1.0 + xp.abs({x})))"
"""A number within a circle of radius 0.4, where functions and their derivatives are of moderate size."""

FUNCTIONS = (
    "exp",
    "log",
    "sqrt",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "asin",
    "atan",
    "asinh",
    "expm1",
)
FUNCTIONS_FROM_ONE = ("log", "log1p", "log2", "log10", "sqrt", "reciprocal", "acosh")
"""Functions that are smooth near 1.5."""


def of(*texts: str, sizes: tuple[tuple[int, ...], ...] = (), axes: bool = False) -> Callable[[Draft], str]:
    """One of these expressions of x, its axis, a complex y that broadcasts with it, and a real r of its shape."""

    def draw(d: Draft) -> str:
        text = d.choice(texts)
        fits = (lambda x: x.shape in sizes) if sizes else (lambda x: not axes or (x.ndim > 0 and x.size > 0))
        x = d.pick(COMPLEX, fits, **({"shapes": sizes} if sizes else {}), fine=d.smooth or d.chance(0.7))
        y = second_operand(d, x) if "{y}" in text else None
        r = d.pick((PARTS[x.dtype],), shape=x.shape, fine=d.smooth) if "{r}" in text else None
        axis = d.axis(x) if x.ndim else None
        tame, one = TAME.format(x=x), f"(1.5 + {TAME.format(x=x)})"
        return str(text.format(x=x, y=y, r=r, axis=axis, tame=tame, one=one, n=x.shape[-1:] and x.shape[-1]))

    return draw


SQUARES = ((2, 2), (3, 3))
REGULAR = "(0.3 * {tame} + 1.5 * xp.eye({n}))"
HERMITIAN = "(0.1 * {tame} + 0.1 * xp.conj({tame}).mT + xp.diag(xp.arange(1.0, {n} + 1.0)))"


def _rows() -> Iterator[Row]:
    def row(name: str, *texts: str, weight: float = 1.0, smooth: bool = True, axes: bool = False) -> Row:
        return Row(name, of(*texts, axes=axes), wide=True, weight=weight, smooth=smooth)

    yield Row(
        "parts",
        of("xp.conj({x})", "xp.real({x})", "xp.imag({x})", "{x}.real"),
        exact=True,
        wide=True,
        weight=3.0,
    )
    yield row("abs or angle", "xp.abs({x} + 0.5)", "xp.angle({x} + 3.0)", "xp.abs({tame})", weight=2.0)
    yield row("abs of any", "xp.abs({x})", "xp.angle({x})", "xp.sign({x})", smooth=False)
    yield row("complex from parts", "{r} + 1j * {r}", "{r} * {x}", "{x} + {r}", "{x} - 1j * {r}", weight=2.0)
    yield row("functions", *(f"xp.{name}({{one}})" for name in FUNCTIONS), weight=3.0)
    yield row("functions from one", *(f"xp.{name}({{one}})" for name in FUNCTIONS_FROM_ONE), weight=2.0)
    yield row(
        "functions near zero",
        "xp.tan({tame})",
        "xp.atanh({tame})",
        "xp.asinh({tame})",
        "xp.expm1({tame})",
        "xp.log1p({tame})",
    )
    yield row(
        "functions of any",
        "xp.exp({x})",
        "xp.sqrt({x})",
        "xp.log({x})",
        "xp.tanh({x})",
        "xp.square({x})",
        smooth=False,
    )
    yield row("quotient", "{x} / (2.5 + 0.3j + {tame})", "1.0 / {one}", "{y} / {one}", weight=2.0)
    yield row("quotient of any", "{x} / {y}", smooth=False)
    yield row(
        "complex power", "{one} ** 2", "{one} ** -1", "{one} ** (0.3 * {tame})", "{x} ** 3", "{one} ** 0.5"
    )
    yield row("with numbers", "{x} * 2.0 - 1j", "(1 - 2j) * {x}", "{x} / 2j", "-{x} + 3", weight=2.0)
    yield row(
        "conjugate products",
        "xp.conj({x}) * {y}",
        "xp.real({x} * xp.conj({y}))",
        "{x} * xp.conj({x})",
        weight=2.0,
    )
    yield row(
        "where of parts", "xp.where(xp.real({x}) > 0.1, {x}, {y})", "xp.where(xp.imag({x}) > 0.3, {x}, 1.0)"
    )
    yield row(
        "reductions",
        "xp.sum({x}, axis={axis})",
        "xp.mean({x}, axis={axis})",
        "xp.cumsum({x}, axis={axis})",
        "xp.prod({x}, axis={axis})",
        axes=True,
    )
    yield row(
        "spread",
        "xp.var({x}, axis={axis})",
        "xp.std({x} + xp.arange(1.0, {n} + 1.0), axis=-1)",
        axes=True,
        smooth=False,
    )
    yield row("norm", "xp.linalg.vector_norm({x} + 2.5, axis={axis})", axes=True)
    yield row(
        "fourier",
        "xp.fft.fft({x}, axis={axis})",
        "xp.fft.ifft({x}, axis={axis})",
        "xp.fft.fftshift({x})",
        "xp.fft.rfft({r}, axis={axis})",
        "xp.fft.hfft({x}, axis={axis})",
        axes=True,
    )
    yield Row(
        "complex order",
        of(
            "xp.sort({x}, axis={axis})",
            "xp.argsort({x}, axis={axis})",
            "{x} == {y}",
            "xp.isnan({x})",
            "xp.isfinite({x})",
            "{x} != {y}",
            axes=True,
        ),
        exact=True,
        smooth=False,
        wide=True,
    )
    for name, texts, matrix in (
        (
            "complex systems",
            (
                "xp.linalg.inv({a})",
                "xp.linalg.solve({a}, {x})",
                "xp.linalg.det({a})",
                "xp.linalg.matrix_power({a}, 3)",
            ),
            REGULAR,
        ),
        (
            "hermitian matrices",
            ("xp.linalg.eigvalsh({a})", "xp.linalg.cholesky({a})", "xp.abs(xp.linalg.eigh({a})[1])"),
            HERMITIAN,
        ),
        (
            "decompositions",
            (
                "xp.linalg.svdvals({a})",
                "xp.abs(xp.linalg.qr({a})[1])",
                "xp.linalg.qr({a})[0] @ xp.linalg.qr({a})[1]",
            ),
            HERMITIAN,
        ),
    ):
        yield Row(name, of(*(text.replace("{a}", matrix) for text in texts), sizes=SQUARES), wide=True)


ROWS = tuple(_rows())
