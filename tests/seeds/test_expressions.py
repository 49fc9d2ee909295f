"""The exact expressions of the article on automatic differentiation: the string backend, and what Fuse makes of it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pytest

import tensorken as tk
from tensorken_core.language.op import OPS
from tensorken_core.rewriting.fuse import Fuse
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference
from tensorken_string.backend import Expression, String

Shape = tuple[int, ...]


def expressions(seeds: dict[str, Any]) -> list[str]:
    return list(seeds["s000_string_backend"])


@pytest.mark.feature(94)
@pytest.mark.parametrize(
    "interpreter",
    [String(), Fuse(String()), tk.ShapeTracker(String()), tk.ShapeTracker(Fuse(String()))],
    ids=repr,
)
def test_constants_print_their_shape_and_numbers(seeds: dict[str, Any], interpreter: Any) -> None:
    t1 = tk.new((2, 2), [1.0, 2.0, 3.0, 4.0], backend=interpreter)
    t2 = tk.new((2, 2), [5.0, 6.0, 7.0, 8.0], backend=interpreter)
    assert str(t1.exp() + t2.log()) == expressions(seeds)[0]


@pytest.mark.feature(94, 95, 117)
def test_symbols_print_their_names(seeds: dict[str, Any]) -> None:
    result = tk.symbol("A").exp() + tk.symbol("B").log()
    assert str(result) == expressions(seeds)[1]
    with tk.use_backend("string"):
        assert str(tk.new((2, 2), [1.0, 2.0, 3.0, 4.0]).exp()) == "new([2, 2], [1.0, 2.0, 3.0, 4.0]).exp()"


@pytest.mark.feature(94, 95)
def test_raw_expressions_print_as_in_the_article(seeds: dict[str, Any]) -> None:
    raw = String()
    a, b = raw.symbol("A"), raw.symbol("B")
    assert str(raw.add(raw.exp(a), raw.log(b))) == expressions(seeds)[1]


@pytest.mark.feature(34, 184)
def test_expressions_know_their_shapes() -> None:
    a, b = tk.symbol("A", (3, 2)), tk.symbol("B", (2,))
    total = a + b
    assert str(total) == "(A + B.reshape([1, 2]).expand([3, 2]))"
    assert (total.shape, total.dtype, total.ndim) == ((3, 2), tk.float32, 2)
    assert (a.permute(1, 0) @ a).shape == (2, 2)
    with pytest.raises(ValueError, match=r"add: .*\(3, 2\).*\(3,\)"):
        a + tk.symbol("C", (3,))
    with pytest.raises(TypeError, match="no values, only the expression"):
        total.tolist()


# ---- Fuse --------------------------------------------------------------------------------------------------


def symbols(*shapes: Shape) -> tuple[Fuse[Expression], list[tk.Tensor]]:
    """Fuse over the string backend, and the symbols t1, t2, ... there."""
    fuse = Fuse(String())
    names = [f"t{i}" for i in range(1, len(shapes) + 1)]
    held = [fuse.wrap(fuse.raw.symbol(name, shape)) for name, shape in zip(names, shapes, strict=True)]  # type: ignore[attr-defined]
    return fuse, [tk.Tensor(fuse, x) for x in held]


def multiply_add(a: tk.Tensor, b: tk.Tensor, *axes: int) -> tk.Tensor:
    return a.apply(OPS["fused_multiply_add"], b, axes)  # type: ignore[no-any-return]


def total(x: tk.Tensor, *axes: int) -> tk.Tensor:
    """The raw sum: summed axes stay, so that their numbers mean the same before and after."""
    return x.sum(axes, keepdims=True)


Case = Callable[[tk.Tensor, tk.Tensor], tk.Tensor]

# What is written, what it must become, and the expression that this is.
FUSED: list[tuple[Case, Case, str]] = [
    (lambda a, b: total(a * b, 0), lambda a, b: multiply_add(a, b, 0), "t1.fused_multiply_add(t2, [0])"),
    (
        lambda a, b: total(multiply_add(a, b, 1), 0),
        lambda a, b: multiply_add(a, b, 0, 1),
        "t1.fused_multiply_add(t2, [0, 1])",
    ),
    (
        lambda a, b: total(total(a * b, 0), 1),
        lambda a, b: multiply_add(a, b, 0, 1),
        "t1.fused_multiply_add(t2, [0, 1])",
    ),
    (lambda a, b: total(total(a, 0), 1), lambda a, b: total(a, 0, 1), "t1.sum([0, 1])"),
    (
        lambda a, b: total(total(a, 0) * total(b, 0), 1),
        lambda a, b: multiply_add(total(a, 0), total(b, 0), 1),
        "t1.sum([0]).fused_multiply_add(t2.sum([0]), [1])",
    ),
]


@pytest.mark.feature(98, 111, 112, 116)
@pytest.mark.parametrize(("written", "wanted", "text"), FUSED, ids=[text for *_, text in FUSED])
def test_products_and_sums_fuse(written: Case, wanted: Case, text: str) -> None:
    _, (a, b) = symbols((2, 3), (2, 3))
    assert str(written(a, b)) == str(wanted(a, b)) == text


@pytest.mark.feature(111, 112)
@pytest.mark.parametrize(("written", "wanted", "text"), FUSED, ids=[text for *_, text in FUSED])
@pytest.mark.parametrize("raw", [Numpy(), Reference()], ids=repr)
def test_fused_numbers_are_those_of_the_plain_backend(
    raw: Any, written: Case, wanted: Case, text: str
) -> None:
    found = []
    for interpreter in (raw, Fuse(raw), tk.ShapeTracker(Fuse(raw))):
        a = tk.linspace(-1.0, 2.0, 6, backend=interpreter).reshape(2, 3)
        b = tk.linspace(3.0, -2.0, 6, backend=interpreter).reshape(2, 3)
        for f in (written, wanted):
            result = f(a, b)
            found.append((result.shape, result.reshape(-1).tolist()))
    first = found[0]
    for shape, values in found[1:]:
        assert shape == first[0]
        assert values == pytest.approx(first[1], rel=1e-6)


@pytest.mark.feature(98)
def test_only_the_raw_language_can_fuse() -> None:
    from tensorken_core.language.diffable import Diffable
    from tensorken_core.language.raw import RawTensor

    assert not hasattr(Diffable, "fused_multiply_add")
    assert hasattr(RawTensor, "fused_multiply_add")
    assert OPS["fused_multiply_add"].differentiable is False


@pytest.mark.feature(114)
def test_a_shared_product_runs_once() -> None:
    """The article's Fuse is made of closures, which would run a value as often as it is used: 2**20 times here."""

    class Counting(Numpy):
        """numpy, with a count of the multiplications."""

        count = 0

        def mul(self, a: Any, b: Any) -> Any:
            self.count += 1
            return super().mul(a, b)

    raw = Counting()
    with tk.use_backend(Fuse(raw)):
        x = tk.tensor([1.5, -2.0])
        y = x * x
        for _ in range(20):
            y = y + y
        assert y.tolist() == [2.25 * 2**20, 4.0 * 2**20]
    assert raw.count <= 4  # the products that one sum holds back, at most


# ---- Fuse beneath derivatives ------------------------------------------------------------------------------


def without_leading(expression: str) -> str:
    return re.sub(r"new\(\[2, 2\], \[[^]]*\]\)", "new", expression)


@pytest.mark.feature(48, 100, 113)
def test_matmul_and_its_derivatives_are_one_contraction_each() -> None:
    """The ancestor's expressions, but for one thing: it repeats each operand to [2, 2, 2] before it contracts them.

    Fuse holds an expand back until the repetition is wanted in full, and a contraction takes the small operands.
    """
    with tk.use_backend(Fuse(String())):
        a, b = [tk.new((2, 2), [first, 2.0, 3.0, 4.0]) for first in (1.0, 5.0)]
        y, pull_back = tk.vjp(tk.matmul, a, b)
        cotangent = tk.new((2, 2), [1.0, 0.0, 0.0, 1.0])
        found = [without_leading(str(t)) for t in (y, *pull_back(cotangent))]
    assert found == [
        "new.reshape([2, 1, 2]).fused_multiply_add(new.reshape([1, 2, 2]).permute([0, 2, 1]), [2]).reshape([2, 2])",
        "new.reshape([2, 2, 1]).fused_multiply_add(new.reshape([1, 2, 2]).permute([0, 2, 1]), [1]).reshape([2, 2])",
        "new.reshape([2, 2, 1]).fused_multiply_add(new.reshape([2, 1, 2]), [0]).permute([2, 1, 0]).reshape([2, 2])",
    ]
    for text in found:
        assert text.count("fused_multiply_add") == 1
        assert not any(word in text for word in ("expand", ".sum(", " * "))


@pytest.mark.feature(113)
def test_the_jvp_of_matmul_is_two_contractions() -> None:
    """With both tangents active the ancestor built a product of three axes, to sum the sum of two products."""
    _, (a, b, da, db) = symbols((2, 3), (3, 4), (2, 3), (3, 4))
    _, pushed = tk.jvp(tk.matmul, (a, b), (da, db))
    assert str(pushed) == (
        "(t3.reshape([2, 1, 3]).fused_multiply_add(t2.reshape([1, 3, 4]).permute([0, 2, 1]), [2])"
        " + t4.reshape([1, 3, 4]).permute([0, 2, 1]).fused_multiply_add(t1.reshape([2, 1, 3]), [2])).reshape([2, 4])"
    )


@pytest.mark.feature(113)
def test_second_derivatives_of_matmul_fuse_too() -> None:
    _, (a, b, da) = symbols((2, 3), (3, 4), (2, 3))
    for mixed in (
        tk.jvp(
            lambda a: tk.vjp(tk.matmul, a, b)[1](tk.ones((2, 4), backend=a.interpreter.base))[0] * a,
            (a,),
            (da,),
        ),
        tk.vjp(lambda a: (a @ b).square().sum(), a)[1](1.0),
    ):
        for tensor in mixed:
            text = str(tensor)
            assert not re.search(r"expand\(\[2, 4, 3\]\)", text), text


@pytest.mark.feature(98)
def test_without_fuse_the_product_is_there() -> None:
    a, b = tk.symbol("A", (2, 3)), tk.symbol("B", (3, 4))
    assert str(a @ b) == (
        "(A.reshape([2, 1, 3]).expand([2, 4, 3]) * B.reshape([1, 3, 4]).permute([0, 2, 1]).expand([2, 4, 3]))"
        ".sum([2]).reshape([2, 4])"
    )


@pytest.mark.feature(66, 103)
def test_a_derivative_is_an_expression() -> None:
    x = tk.symbol("x")
    assert str(tk.grad(tk.tanh)(x)) == "(1.0 * x.sech_squared())"
    assert str(tk.jvp(lambda x: x * x, (x,), (tk.symbol("dx"),))[1]) == "((dx * x) + (dx * x))"


# ---- ShapeTracker ------------------------------------------------------------------------------------------


class Blind(Numpy):
    """numpy, refusing to tell a shape: whoever needs one must know it without running anything."""

    def shape(self, x: Any) -> Shape:
        raise AssertionError("a shape was asked of the backend")


@pytest.mark.feature(115, 116)
def test_shapes_are_tracked_without_asking_the_backend() -> None:
    with tk.use_backend(tk.ShapeTracker(Blind())):
        x = tk.linspace(1.0, 6.0, 6).reshape(2, 3)
        y = (x @ x.T).exp().sum(0)
        assert (y.shape, x.permute(1, 0)[1:].shape) == ((2,), (2, 2))
        gradient = tk.grad(lambda x: (x @ x.T).sum())(x)
        assert gradient.shape == (2, 3)
        assert gradient.tolist() == [[10.0, 14.0, 18.0]] * 2


@pytest.mark.feature(116, 117)
@pytest.mark.parametrize("raw", [Numpy, Reference])
def test_interpreters_stack(raw: Callable[[], Any], seeds: dict[str, Any]) -> None:
    numbers = seeds["s000_tanh"]
    for stack in (raw(), Fuse(raw()), tk.ShapeTracker(raw()), tk.ShapeTracker(Fuse(raw()))):
        with tk.use_backend(stack):
            found = tk.grad(tk.derivative(tk.tanh))(tk.scalar(2.0)).item()
        assert math.isclose(found, numbers["ddf"], rel_tol=numbers["rtol"])
