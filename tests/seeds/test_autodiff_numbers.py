"""The numbers of the article on automatic differentiation: tanh, logistic regression, Jacobians, Hessians."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

import tensorken as tk
from tensorken_core.levels.forward import Dual, Forward

FIRST_DERIVATIVES: dict[str, Callable[..., Any]] = {"forward": tk.derivative, "reverse": tk.grad}
JACOBIANS = {"forward": tk.jacfwd, "reverse": tk.jacrev}


@pytest.fixture(params=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Regression:
    """The article's logistic regression: four measurements of three inputs each, four labels."""

    def __init__(self, numbers: dict[str, Any], dtype: str) -> None:
        self.inputs = tk.tensor(numbers["inputs"], dtype)
        self.targets = tk.tensor(numbers["targets"], dtype)
        self.w = tk.tensor(numbers["w"], dtype)
        self.b = tk.scalar(numbers["b"], dtype)
        # In float32 the article's own numbers count; they carry its rounding errors, so in float64 better ones do.
        wide = dtype == "float64"
        self.expected = numbers["f64" if wide else "seed"]
        tolerances = numbers["tol"]["float64_vs_f64_reference" if wide else "float32"]
        self.tolerance: dict[str, float] = tolerances

    def predict(self, w: tk.Tensor, b: tk.Tensor) -> tk.Tensor:
        return (self.inputs @ w + b).sigmoid()

    def of_weights(self, w: tk.Tensor) -> tk.Tensor:
        return self.predict(w, self.b)

    def loss(self, w: tk.Tensor, b: tk.Tensor) -> tk.Tensor:
        """The negative log-likelihood of the labels."""
        prediction = self.predict(w, b)
        of_labels = prediction * self.targets + (tk.ones_like(prediction) - prediction) * (
            tk.ones_like(self.targets) - self.targets
        )
        return -of_labels.log().sum(0)


@pytest.fixture
def regression(seeds: dict[str, Any], backend: str, dtype: str) -> Regression:
    return Regression(seeds["s000_logreg"], dtype)


@pytest.mark.feature(66, 67, 68, 69, 71, 99, 108, 182, 186)
@pytest.mark.parametrize(
    "modes", [m for n in (1, 2, 3) for m in itertools.product(FIRST_DERIVATIVES, repeat=n)]
)
def test_the_derivatives_of_tanh(
    seeds: dict[str, Any], backend: str, dtype: str, modes: tuple[str, ...], close: Callable[..., None]
) -> None:
    numbers = seeds["s000_tanh"]
    differentiated: Callable[..., Any] = tk.tanh
    for mode in modes:
        differentiated = FIRST_DERIVATIVES[mode](differentiated)
    found = differentiated(tk.scalar(numbers["at"], dtype))
    assert found.dtype.name == dtype
    if dtype == "float64":
        close(found, numbers["f64"][len(modes) - 1], rtol=1e-12)
    else:
        close(found, numbers["df ddf dddf".split()[len(modes) - 1]], rtol=numbers["rtol"])


@pytest.mark.feature(70)
def test_numbers_stand_beside_tensors(
    seeds: dict[str, Any], backend: str, close: Callable[..., None]
) -> None:
    expected = seeds["s000_tanh"]["df"]
    close(tk.grad(tk.tanh)(2.0), expected, rtol=1e-6)
    close(tk.grad(lambda x: 3 - tk.tanh(2 * x / 2 + 1 - 1.0))(2.0), -expected, rtol=1e-6)


@pytest.mark.feature(92, 104)
def test_dual_numbers_multiply_by_the_product_rule(
    seeds: dict[str, Any], backend: str, close: Callable[..., None]
) -> None:
    first, second, product = seeds["s000_dual_number"]
    found = tk.jvp(lambda x, y: x * y, (first[0], second[0]), (first[1], second[1]))
    for part, expected in zip(found, product, strict=True):
        close(part, expected, rtol=0.0)
    # The same inside the interpreter, where a constant has no tangent at all, not one of zeros.
    inner = tk.scalar(0.0).interpreter
    level: Forward[Any] = Forward(inner)

    def dual(*parts: float | None) -> Dual[Any]:
        return Dual(*[None if part is None else tk.scalar(part).representation for part in parts])

    result = level.mul(dual(*first), dual(*second))
    assert [tk.Tensor(inner, part).item() for part in (result.primal, result.tangent)] == product
    assert level.mul(dual(3.0, None), dual(5.0, None)).tangent is None
    half = level.mul(dual(3.0, None), dual(5.0, 7.0))
    assert tk.Tensor(inner, half.tangent).item() == 21.0


@pytest.mark.feature(72, 73)
def test_prediction_and_loss(regression: Regression, close: Callable[..., None]) -> None:
    r = regression
    close(r.predict(r.w, r.b), r.expected["prediction"], **r.tolerance)
    close(r.loss(r.w, r.b), r.expected["loss"], **r.tolerance)


@pytest.mark.feature(74, 75)
def test_the_gradient_of_one_argument_at_a_time(regression: Regression, close: Callable[..., None]) -> None:
    r = regression
    close(tk.grad(r.loss, 0)(r.w, r.b), r.expected["w_grad"], **r.tolerance)
    close(tk.grad(r.loss, 1)(r.w, r.b), r.expected["b_grad"], **r.tolerance)
    # A tensor from outside the function is a constant by itself; stop_gradient says the same out loud.
    close(tk.grad(lambda w: r.loss(w, r.b))(r.w), r.expected["w_grad"], **r.tolerance)
    close(tk.grad(lambda w: r.loss(w, tk.stop_gradient(r.b)))(r.w), r.expected["w_grad"], **r.tolerance)
    stopped = tk.grad(lambda w, b: r.loss(w, tk.stop_gradient(b)), (0, 1))(r.w, r.b)
    close(stopped[0], r.expected["w_grad"], **r.tolerance)
    close(stopped[1], 0.0, rtol=0.0)


@pytest.mark.feature(76, 140)
def test_both_gradients_in_one_pass(regression: Regression, close: Callable[..., None]) -> None:
    r, calls = regression, []

    def counted(w: tk.Tensor, b: tk.Tensor) -> tk.Tensor:
        calls.append(1)
        return r.loss(w, b)

    w_grad, b_grad = tk.grad(counted, (0, 1))(r.w, r.b)
    assert len(calls) == 1
    close(w_grad, r.expected["w_grad"], **r.tolerance)
    close(b_grad, r.expected["b_grad"], **r.tolerance)
    b_first, w_second = tk.grad(r.loss, (1, 0))(r.w, r.b)
    close(b_first, r.expected["b_grad"], **r.tolerance)
    close(w_second, r.expected["w_grad"], **r.tolerance)


@pytest.mark.feature(195, 198)
def test_gradients_of_a_tree_of_parameters(regression: Regression, close: Callable[..., None]) -> None:
    r = regression
    gradients = tk.grad(lambda p: r.loss(p["w"], p["more"][0]))({"w": r.w, "more": [r.b]})
    assert set(gradients) == {"w", "more"}
    close(gradients["w"], r.expected["w_grad"], **r.tolerance)
    close(gradients["more"][0], r.expected["b_grad"], **r.tolerance)


@pytest.mark.feature(78)
def test_value_and_gradient(regression: Regression, close: Callable[..., None]) -> None:
    r = regression
    value, (w_grad, b_grad) = tk.value_and_grad(r.loss, (0, 1))(r.w, r.b)
    close(value, r.expected["loss"], **r.tolerance)
    close(w_grad, r.expected["w_grad"], **r.tolerance)
    close(b_grad, r.expected["b_grad"], **r.tolerance)


@pytest.mark.feature(77)
def test_one_step_of_gradient_descent(regression: Regression, close: Callable[..., None]) -> None:
    r = regression
    w_grad, b_grad = tk.grad(r.loss, (0, 1))(r.w, r.b)
    new_w, new_b = r.w - w_grad, r.b - b_grad
    close(r.predict(new_w, new_b), r.expected["new_prediction"], **r.tolerance)
    close(r.loss(new_w, new_b), r.expected["new_loss"], **r.tolerance)


@pytest.mark.feature(79, 199)
def test_finite_differences(seeds: dict[str, Any], regression: Regression, dtype: str) -> None:
    r, numbers = regression, seeds["s000_logreg"]["b_grad_numerical"]
    half = numbers["eps"] / 2
    slope = ((r.loss(r.w, r.b + half) - r.loss(r.w, r.b - half)) / numbers["eps"]).item()
    if dtype == "float64":
        assert slope == pytest.approx(numbers["float64_value"], abs=numbers["float64_tol"])
    else:
        # Two losses near 10.5 differ by whole multiples of 2**-20, so a float32 slope moves in steps of 0.0095, and
        # which step it lands on depends on the last bit of exp and log: the derivative is what both slopes surround.
        tolerance = numbers["float32_central_difference_must_be_within"]
        assert numbers["seed"] == pytest.approx(r.expected["b_grad"], abs=tolerance)
        assert slope == pytest.approx(r.expected["b_grad"], abs=tolerance)
        steps = slope * numbers["eps"] * 2**20
        assert steps == pytest.approx(round(steps), abs=1e-3)
    tk.testing.check_grads(r.loss, (r.w, r.b), order=2 if dtype == "float64" else 1)


@pytest.mark.feature(80, 139)
def test_the_gradient_of_a_vector_is_named_for_what_it_is(
    regression: Regression, close: Callable[..., None]
) -> None:
    r = regression
    summed = tk.elementwise_grad(r.of_weights)(r.w)
    close(summed, r.expected["grad_of_vector_output"], **r.tolerance)
    close(tk.vjp(r.of_weights, r.w)[1](tk.ones_like(r.targets))[0], summed.tolist(), rtol=0.0)
    close(tk.jacrev(r.of_weights)(r.w).sum(0), r.expected["grad_of_vector_output"], **r.tolerance)
    with pytest.raises(TypeError, match=r"scalar-valued .* \(4,\); use jacrev, vjp or elementwise_grad"):
        tk.grad(r.of_weights)(r.w)


@pytest.mark.feature(81, 82, 83, 85)
def test_jacobians(regression: Regression, close: Callable[..., None]) -> None:
    r = regression
    forward, reverse = tk.jacfwd(r.of_weights)(r.w), tk.jacrev(r.of_weights)(r.w)
    close(forward, r.expected["jacfwd"], **r.tolerance)
    close(reverse, r.expected["jacrev"], **r.tolerance)
    close(forward, reverse.tolist(), **r.tolerance)
    # For several arguments there is one Jacobian each, of the output's shape followed by the argument's.
    of_both = tk.jacrev(r.predict, (0, 1))(r.w, r.b)
    close(of_both[0], r.expected["jacrev"], **r.tolerance)
    assert of_both[1].shape == (4,)


@pytest.mark.feature(84, 85, 108)
@pytest.mark.parametrize("inner", JACOBIANS)
@pytest.mark.parametrize("outer", JACOBIANS)
def test_hessians_by_every_composition(
    seeds: dict[str, Any],
    regression: Regression,
    dtype: str,
    outer: str,
    inner: str,
    close: Callable[..., None],
) -> None:
    r, numbers = regression, seeds["s000_logreg"]
    found = JACOBIANS[outer](JACOBIANS[inner](r.of_weights))(r.w)
    close(found, numbers["hessian_f64"], shape=tuple(numbers["hessian_shape"]), **r.tolerance)
    close(found.permute(0, 2, 1), found.tolist(), **r.tolerance)
    if dtype == "float64":
        close(found, tk.hessian(r.of_weights)(r.w).tolist(), rtol=1e-10, atol=1e-14)


@pytest.mark.feature(86, 87, 91)
def test_jvp(seeds: dict[str, Any], regression: Regression, dtype: str, close: Callable[..., None]) -> None:
    r, numbers = regression, seeds["s000_logreg"]["jvp"]
    v = tk.tensor(numbers["v"], dtype)
    value, pushed = tk.jvp(r.of_weights, (r.w,), (v,))
    close(value, r.expected["prediction"], **r.tolerance)
    close(pushed, numbers["out"], **r.tolerance)
    close(pushed, (tk.jacfwd(r.of_weights)(r.w) @ v).tolist(), **r.tolerance)
    # A composition may also be pushed through in two steps.
    logits, between = tk.jvp(lambda w: r.inputs @ w + r.b, (r.w,), (v,))
    close(tk.jvp(tk.sigmoid, (logits,), (between,))[1], numbers["out"], **r.tolerance)


@pytest.mark.feature(88, 89, 91)
def test_vjp(seeds: dict[str, Any], regression: Regression, dtype: str, close: Callable[..., None]) -> None:
    r, numbers = regression, seeds["s000_logreg"]["vjp"]
    u = tk.tensor(numbers["u"], dtype)
    value, pull_back = tk.vjp(r.of_weights, r.w)
    close(value, r.expected["prediction"], **r.tolerance)
    for _ in range(2):  # the pullback may be called as often as one likes
        close(pull_back(u)[0], numbers["out"], **r.tolerance)
    close(pull_back(u + u)[0], (pull_back(u)[0] * 2).tolist(), **r.tolerance)
    of_both = tk.vjp(r.predict, r.w, r.b)[1](u)
    close(of_both[0], numbers["out"], **r.tolerance)
    assert of_both[1].shape == ()
    with pytest.raises(ValueError, match=r"vjp: the cotangent has shape \(3,\), need \(4,\)"):
        pull_back(r.w)


@pytest.mark.feature(200)
def test_products_of_hessians_with_vectors(
    regression: Regression, dtype: str, close: Callable[..., None]
) -> None:
    r = regression
    v = tk.tensor([1.0, -2.0, 0.5], dtype)

    def loss(w: tk.Tensor) -> tk.Tensor:
        return r.loss(w, r.b)

    expected = (tk.hessian(loss)(r.w) @ v).tolist()
    close(tk.hvp(loss, (r.w,), (v,)), expected, rtol=1e-5, atol=1e-6)
    close(tk.grad(lambda w: (tk.grad(loss)(w) * v).sum())(r.w), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.feature(105, 110, 141)
def test_what_does_not_depend_on_an_argument_has_zeros(
    regression: Regression, close: Callable[..., None]
) -> None:
    r = regression
    value, pushed = tk.jvp(lambda w: r.inputs @ w.ones_like(), (r.w,), (r.w,))
    assert value.shape == pushed.shape == (4,)
    close(pushed, [0.0] * 4, rtol=0.0)
    close(tk.grad(lambda w, unused: r.loss(w, r.b), 1)(r.w, r.targets), [0.0] * 4, rtol=0.0)
    with pytest.raises(TypeError, match=r"does not depend on argument .*allow_unused=True"):
        tk.grad(lambda w, unused: r.loss(w, r.b), (0, 1), allow_unused=False)(r.w, r.targets)
