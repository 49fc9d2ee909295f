"""A walk through derivatives, from the derivative of tanh to the interpreters that implement it all.

    python examples/autodiff_cookbook.py

TENSORKEN_BACKEND chooses the backend. The examples follow the article "Beyond Backpropagation" (2023) about Tensorken's
Rust ancestor, which in turn follows JAX's Autodiff Cookbook, and they print the article's numbers, up to the last digit
or two of a float32.
"""

from __future__ import annotations

import tensorken as tk
from tensorken_core.levels.forward import Dual, Forward
from tensorken_core.levels.reverse import Reverse
from tensorken_string.backend import Expression, String

# ---- the model ---------------------------------------------------------------------------------------------

# A small data set: each row has three measurements, and each target says whether an event occurred.
INPUTS = tk.tensor([[0.52, 1.12, 0.77], [0.88, -1.08, 0.15], [0.52, 0.06, -1.30], [0.74, -2.49, 1.39]])
TARGETS = tk.tensor([1.0, 1.0, 0.0, 1.0])

# Random initial parameters.
W = tk.tensor([0.712813, 0.85833144, -2.4362438])
B = tk.scalar(0.16334426)


def predict(w: tk.Tensor, b: tk.Tensor, inputs: tk.Tensor = INPUTS) -> tk.Tensor:
    """The predicted probability of each event: logistic regression, a neural network of one neuron.

    Nothing here mentions derivatives. The function consists of tensor operations, and the tensors' interpreter
    decides what they do.
    """
    return (inputs @ w + b).sigmoid()


def loss(w: tk.Tensor, b: tk.Tensor) -> tk.Tensor:
    """The negative log-likelihood: large if the model gave high probabilities to wrong outcomes."""
    prediction = predict(w, b)
    of_targets = prediction * TARGETS + (1 - prediction) * (1 - TARGETS)
    return -of_targets.log().sum()


def title(text: str) -> None:
    """Print a heading."""
    print(f"\n{text}\n{'-' * len(text)}")


# ---- the cookbook ------------------------------------------------------------------------------------------


def gradients() -> None:
    """`grad` takes a function and returns a function, so it can be applied to its own result."""
    title("Gradients")
    df = tk.grad(tk.tanh)
    ddf = tk.grad(df)
    dddf = tk.grad(ddf)
    print("df:  ", df(2.0))
    print("ddf: ", ddf(2.0))
    print("dddf:", dddf(2.0))


def logistic_regression() -> None:
    """The gradient of a loss gives the direction in which to move the parameters; one step already helps a lot."""
    title("Logistic regression")
    print("prediction:", predict(W, B))
    print("loss:", loss(W, B))

    # By default the first argument is differentiated, and all others are constants, as is any tensor from outside the
    # function. stop_gradient makes a constant of any other value.
    print("w_grad:", tk.grad(loss)(W, B))
    print("b_grad:", tk.grad(loss, argnums=1)(W, B))
    print("b_grad, W held fixed:", tk.grad(lambda b: loss(tk.stop_gradient(W), b))(B))

    # Both gradients together cost one pass instead of two.
    w_grad, b_grad = tk.grad(loss, argnums=(0, 1))(W, B)
    print("both:", w_grad, b_grad)

    # Parameters may be in a dictionary: the gradient then has the same keys.
    tree = tk.grad(lambda parameters: loss(**parameters))({"w": W, "b": B})
    print(f"as a dictionary: w {tree['w']} and b {tree['b']}")

    # A step against the gradient lowers the loss.
    new_w, new_b = W - w_grad, B - b_grad
    print("new_prediction:", predict(new_w, new_b))
    print("new_loss:", loss(new_w, new_b))


def value_and_gradient() -> None:
    """A training loop also needs the loss itself, without computing it twice."""
    title("A value together with its gradient")
    value, (w_grad, b_grad) = tk.value_and_grad(loss, argnums=(0, 1))(W, B)
    print("loss:", value)
    print("w_grad:", w_grad)
    print("b_grad:", b_grad)


def finite_differences() -> None:
    """A finite difference must agree with the gradient, up to rounding."""
    title("Checking against finite differences")
    step = 1e-4
    rise = loss(W, B + step / 2) - loss(W, B - step / 2)
    print("b_grad_numerical in float32:", rise / step)
    print("b_grad_autodiff:", tk.grad(loss, 1)(W, B))

    # Near 10.5, float32 numbers are a millionth apart, which the division by the step turns into hundredths: this
    # explains the difference above. In float64 it disappears.
    b = B.astype("float64")
    rise = loss(W, b + step / 2) - loss(W, b - step / 2)
    print("b_grad_numerical in float64:", f"{rise / step:.5f}")

    # This checks first and second derivatives, in forward, reverse and mixed mode, along random directions.
    tk.testing.check_grads(loss, (W.astype("float64"), b), order=2)
    print("check_grads found no errors")


def of_weights(w: tk.Tensor) -> tk.Tensor:
    """The prediction as a function of the weights: three numbers in, four out."""
    return predict(w, B)


def jacobians() -> None:
    """With several outputs, each has its own gradient; together they are the rows of the Jacobian."""
    title("Jacobians")
    try:
        tk.grad(of_weights)(W)
    except TypeError as error:
        print("error:", error)

    # elementwise_grad returns the sum of those rows, which is right only for elementwise functions.
    print("deriv:", tk.elementwise_grad(of_weights)(W))

    # Forward mode computes a column at a time, best for few inputs; reverse mode computes a row, best for few outputs.
    forward, reverse = tk.jacfwd(of_weights)(W), tk.jacrev(of_weights)(W)
    print(f"jacfwd result, with shape {forward.shape}")
    print(forward)
    print(f"jacrev result, with shape {reverse.shape}")
    print(reverse)
    print("the sum over its rows:", reverse.sum(0))


def hessians() -> None:
    """The Jacobian of a Jacobian contains the second derivatives; each of the two may use either mode."""
    title("Hessians")
    modes = {"jacfwd": tk.jacfwd, "jacrev": tk.jacrev}
    for outer_name, outer in modes.items():
        for inner_name, inner in modes.items():
            hessian = outer(inner(of_weights))(W)
            print(f"{outer_name}({inner_name}): hessian shape {hessian.shape}, for the first output")
            print(f"{hessian[0]:.5f}")

    # `hessian` is the usual combination. A Hessian-vector product does not need the Hessian.
    direction = tk.tensor([1.0, -2.0, 0.5])
    hessian = tk.hessian(lambda w: loss(w, B))(W)
    print("H v: ", f"{hessian @ direction:.4f}")
    print("hvp: ", f"{tk.hvp(lambda w: loss(w, B), (W,), (direction,)):.4f}")


# ---- the two functions beneath -----------------------------------------------------------------------------


def jvp_and_vjp() -> None:
    """All of the above is built on two functions: one pushes tangents forward, the other pulls cotangents back."""
    title("jvp and vjp")
    v = tk.tensor([1.0, -2.0, 0.5])
    prediction, tangent = tk.jvp(of_weights, (W,), (v,))
    print("jvp, the value:  ", prediction)
    print("jvp, the tangent:", tangent)
    print("the Jacobian times v:", tk.jacfwd(of_weights)(W) @ v)

    # JVPs compose like functions: the tangent of the first function is the input of the second JVP.
    logits, between = tk.jvp(lambda w: INPUTS @ w + B, (W,), (v,))
    print("in two steps:    ", tk.jvp(tk.sigmoid, (logits,), (between,))[1])

    # Reverse mode takes two passes, so vjp returns the value and a function for the second pass.
    u = tk.tensor([1.0, 2.0, -1.0, 0.5])
    prediction, pull_back = tk.vjp(of_weights, W)
    print("vjp, the value:    ", prediction)
    print("vjp, the cotangent:", *pull_back(u))
    print("u times the Jacobian:", u @ tk.jacrev(of_weights)(W))
    print("once more, from ones:", *pull_back(tk.ones_like(u)))


# ---- interpreters ------------------------------------------------------------------------------------------


def expressions() -> None:
    """The operations are a language. One of its interpreters computes nothing and prints the expression."""
    title("An interpreter that prints")
    t1 = tk.new((2, 2), [1.0, 2.0, 3.0, 4.0], backend="string")
    t2 = tk.new((2, 2), [5.0, 6.0, 7.0, 8.0], backend="string")
    print(t1.exp() + t2.log())
    print(tk.symbol("A").exp() + tk.symbol("B").log())

    # Derivatives are expressions in the same language, so they print as well.
    print("tanh'(x) =", tk.grad(tk.tanh)(tk.symbol("x")))


def levels() -> None:
    """A transform adds an interpreter on top of the current one; nested transforms form a stack."""
    title("Interpreters that differentiate")

    # Forward computes on pairs of a value and its tangent: dual numbers. By the product rule,
    # (3, 4) * (5, 7) = (3 * 5, 3 * 7 + 5 * 4).
    value, tangent = tk.jvp(lambda x, y: x * y, (3.0, 5.0), (4.0, 7.0))
    print("(3, 4) * (5, 7) =", (value.item(), tangent.item()))

    # The same without the wrapper. A constant has no tangent, not even zeros, so nothing is multiplied by it.
    string = String()
    forward: Forward[Expression] = Forward(string)
    x = Dual(string.symbol("x"), string.symbol("dx"))
    c: Dual[Expression] = Dual(string.symbol("c"), None)
    print("the tangent of x * c:", forward.mul(x, c).tangent)
    print("the tangent of c * c:", forward.mul(c, c).tangent)

    # Reverse computes the values, and records the operations on a tape for the backward pass.
    def recorded(x: tk.Tensor) -> tk.Tensor:
        y = (x * x).sin() + 1.0
        assert isinstance(y.interpreter, Reverse)
        print("on the tape:", [record[0].name for record in y.interpreter.tape if record is not None])
        return y

    tk.grad(recorded)(2.0)

    # Each nested transform runs on the one around it, so a value may be a pair of pairs, or a pair on a tape.
    def tower(x: tk.Tensor) -> tk.Tensor:
        level, names = x.interpreter, []
        while level.below is not None:
            names.append(type(level).__name__)
            level = level.below
        print("levels:", " over ".join(names), "over the backend")
        return x.tanh()

    print("forward over reverse:", tk.derivative(tk.grad(tower))(2.0))
    print("reverse over forward:", tk.grad(tk.derivative(tower))(2.0))
    print("three of them:", tk.grad(tk.derivative(tk.grad(tower)))(2.0))

    # The variables of nested calls are not confused, even if they have equal values: x * d(x + y)/dy is x.
    print("not confused:", tk.grad(lambda x: x * tk.grad(lambda y: x + y)(1.0))(1.0))


def fusion() -> None:
    """A matrix product is a product and a sum. Fuse combines them, so that the product is never stored."""
    title("An interpreter that fuses")
    string = String()
    fuse = tk.Fuse(string)

    def symbol(name: str, shape: tuple[int, ...]) -> tk.Tensor:
        return tk.Tensor(fuse, fuse.wrap(string.symbol(name, shape)))

    a, b = symbol("A", (2, 3)), symbol("B", (2, 3))
    print((a * b).sum(0, keepdims=True))
    print((a * b).sum(0, keepdims=True).sum(1, keepdims=True))
    print(a.sum(0, keepdims=True).sum(1, keepdims=True))
    print((a.sum(0, keepdims=True) * b.sum(0, keepdims=True)).sum(1, keepdims=True))

    # Without Fuse, a matrix product has all m * n * k products in it.
    print("plain:", tk.symbol("A", (2, 3)) @ tk.symbol("C", (3, 4)))

    # With Fuse, there is one contraction of two small operands, also in each derivative.
    c, cotangent = symbol("C", (3, 4)), symbol("G", (2, 4))
    product, pull_back = tk.vjp(tk.matmul, a, c)
    print("fused:", product)
    for name, pulled in zip("AC", pull_back(cotangent), strict=True):
        print(f"pulled back to {name}:", pulled)


def shapes() -> None:
    """Derivative rules need shapes. ShapeTracker computes them without a backend that would have to run deferred
    work.
    """
    title("An interpreter that knows shapes")

    class Shapeless(String):
        """A backend for which a shape requires a computation."""

        def shape(self, x: object) -> tuple[int, ...]:
            raise RuntimeError("the shape must not be requested")

    with tk.use_backend(tk.ShapeTracker(Shapeless())):
        x = tk.new((2, 3), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        print("x @ x.T has shape", (x @ x.T).shape)
        print("its gradient has shape", tk.grad(lambda x: (x @ x.T).sum())(x).shape)


def draw(figure) -> None:
    """The hyperbolic tangent and its first three derivatives, each the gradient of the one before."""
    axes = figure.subplots()
    x, f = tk.linspace(-4.0, 4.0, 120), tk.tanh
    for name in ("tanh", "first derivative", "second", "third"):
        axes.plot(x, tk.vmap(f)(x), label=name)
        f = tk.grad(f)
    axes.set(xlabel="x")
    axes.legend()


def main() -> None:
    """Run all parts."""
    print("The autodiff cookbook")
    gradients()
    logistic_regression()
    value_and_gradient()
    finite_differences()
    jacobians()
    hessians()
    jvp_and_vjp()
    expressions()
    levels()
    fusion()
    shapes()


if __name__ == "__main__":
    main()
