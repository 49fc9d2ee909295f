"""A walk through derivatives, from the slope of tanh to the interpreters that make all of it work.

    python examples/autodiff_cookbook.py

Everything runs on whichever backend TENSORKEN_BACKEND names. The examples follow the article "Beyond
Backpropagation" (2023) about Tensorken's Rust ancestor, which in turn follows JAX's Autodiff Cookbook, and they
print that article's numbers, but for the last digit or two of a float32.
"""

from __future__ import annotations

import tensorken as tk
from tensorken_core.levels.forward import Dual, Forward
from tensorken_core.levels.reverse import Reverse
from tensorken_string.backend import Expression, String

# ---- what is differentiated --------------------------------------------------------------------------------

# A toy data set: each row holds three measurements, and each target says whether something then happened.
INPUTS = tk.tensor([[0.52, 1.12, 0.77], [0.88, -1.08, 0.15], [0.52, 0.06, -1.30], [0.74, -2.49, 1.39]])
TARGETS = tk.tensor([1.0, 1.0, 0.0, 1.0])

# The parameters, as some random generator once left them.
W = tk.tensor([0.712813, 0.85833144, -2.4362438])
B = tk.scalar(0.16334426)


def predict(w: tk.Tensor, b: tk.Tensor, inputs: tk.Tensor = INPUTS) -> tk.Tensor:
    """How likely each row is to have happened: logistic regression, which is a neural network of one neuron.

    Nothing here speaks of derivatives. The function is made of tensor operations, and those mean whatever the
    tensors' interpreter takes them to mean.
    """
    return (inputs @ w + b).sigmoid()


def loss(w: tk.Tensor, b: tk.Tensor) -> tk.Tensor:
    """The negative log-likelihood: large where the model found likely what did not happen."""
    prediction = predict(w, b)
    of_targets = prediction * TARGETS + (1 - prediction) * (1 - TARGETS)
    return -of_targets.log().sum()


def title(text: str) -> None:
    """Print a heading."""
    print(f"\n{text}\n{'-' * len(text)}")


# ---- the cookbook ------------------------------------------------------------------------------------------


def gradients() -> None:
    """`grad` takes a function and returns a function, so it can be applied to what it returned."""
    title("Gradients")
    df = tk.grad(tk.tanh)
    ddf = tk.grad(df)
    dddf = tk.grad(ddf)
    print("df:  ", df(2.0))
    print("ddf: ", ddf(2.0))
    print("dddf:", dddf(2.0))


def logistic_regression() -> None:
    """The gradient of a loss says which way to move each parameter; one step that way helps a lot."""
    title("Logistic regression")
    print("prediction:", predict(W, B))
    print("loss:", loss(W, B))

    # By default the first argument is differentiated, and all others are constants. So is any tensor that the
    # function finds outside itself; stop_gradient makes a constant of a value that would not be one.
    print("w_grad:", tk.grad(loss)(W, B))
    print("b_grad:", tk.grad(loss, argnums=1)(W, B))
    print("b_grad, W held fixed:", tk.grad(lambda b: loss(tk.stop_gradient(W), b))(B))

    # Both at once cost one pass instead of two.
    w_grad, b_grad = tk.grad(loss, argnums=(0, 1))(W, B)
    print("both:", w_grad, b_grad)

    # Parameters may as well live in a dictionary: the gradient then has its keys.
    tree = tk.grad(lambda parameters: loss(**parameters))({"w": W, "b": B})
    print(f"as a dictionary: w {tree['w']} and b {tree['b']}")

    # Against the gradient is downhill.
    new_w, new_b = W - w_grad, B - b_grad
    print("new_prediction:", predict(new_w, new_b))
    print("new_loss:", loss(new_w, new_b))


def value_and_gradient() -> None:
    """A training loop wants to watch the loss that it differentiates, without computing it twice."""
    title("A value together with its gradient")
    value, (w_grad, b_grad) = tk.value_and_grad(loss, argnums=(0, 1))(W, B)
    print("loss:", value)
    print("w_grad:", w_grad)
    print("b_grad:", b_grad)


def finite_differences() -> None:
    """A slope measured with a small step must agree, as far as the floats allow."""
    title("Checking against finite differences")
    step = 1e-4
    rise = loss(W, B + step / 2) - loss(W, B - step / 2)
    print("b_grad_numerical in float32:", rise / step)
    print("b_grad_autodiff:", tk.grad(loss, 1)(W, B))

    # Near 10.5 a float32 moves in steps of a millionth, which the division by the step makes hundredths: that is
    # all the difference above. With twice the bits it is gone.
    b = B.astype("float64")
    rise = loss(W, b + step / 2) - loss(W, b - step / 2)
    print("b_grad_numerical in float64:", f"{rise / step:.5f}")

    # This compares first and second derivatives, forward and reverse and mixed, along random directions.
    tk.testing.check_grads(loss, (W.astype("float64"), b), order=2)
    print("check_grads found nothing to complain about")


def of_weights(w: tk.Tensor) -> tk.Tensor:
    """The prediction as a function of the weights: three numbers in, four out."""
    return predict(w, B)


def jacobians() -> None:
    """With several outputs, each has a gradient of its own; together they are the rows of the Jacobian."""
    title("Jacobians")
    try:
        tk.grad(of_weights)(W)
    except TypeError as error:
        print("error:", error)

    # elementwise_grad gives the sum of those rows, which is seldom what one wants, and says so by its name.
    print("deriv:", tk.elementwise_grad(of_weights)(W))

    # Forward mode finds a column at a time and suits few inputs; reverse mode finds a row and suits few outputs.
    forward, reverse = tk.jacfwd(of_weights)(W), tk.jacrev(of_weights)(W)
    print(f"jacfwd result, with shape {forward.shape}")
    print(forward)
    print(f"jacrev result, with shape {reverse.shape}")
    print(reverse)
    print("the sum over its rows:", reverse.sum(0))


def hessians() -> None:
    """The Jacobian of a Jacobian holds the second derivatives; each of the two may go either way."""
    title("Hessians")
    modes = {"jacfwd": tk.jacfwd, "jacrev": tk.jacrev}
    for outer_name, outer in modes.items():
        for inner_name, inner in modes.items():
            hessian = outer(inner(of_weights))(W)
            print(f"{outer_name}({inner_name}): hessian shape {hessian.shape}, for the first output")
            print(f"{hessian[0]:.5f}")

    # The usual choice has a name. A Hessian times a vector needs no Hessian.
    direction = tk.tensor([1.0, -2.0, 0.5])
    whole = tk.hessian(lambda w: loss(w, B))(W)
    print("H v: ", f"{whole @ direction:.4f}")
    print("hvp: ", f"{tk.hvp(lambda w: loss(w, B), (W,), (direction,)):.4f}")


# ---- the two functions beneath -----------------------------------------------------------------------------


def jvp_and_vjp() -> None:
    """All of the above is made of two functions: one pushes tangents forward, one pulls cotangents back."""
    title("jvp and vjp")
    v = tk.tensor([1.0, -2.0, 0.5])
    prediction, tangent = tk.jvp(of_weights, (W,), (v,))
    print("jvp, the value:  ", prediction)
    print("jvp, the tangent:", tangent)
    print("the Jacobian times v:", tk.jacfwd(of_weights)(W) @ v)

    # Functions compose, and so do their pushes: what leaves the first enters the second.
    logits, between = tk.jvp(lambda w: INPUTS @ w + B, (W,), (v,))
    print("in two steps:    ", tk.jvp(tk.sigmoid, (logits,), (between,))[1])

    # Going back takes two passes, so vjp returns the value and a function for the second pass.
    u = tk.tensor([1.0, 2.0, -1.0, 0.5])
    prediction, pull_back = tk.vjp(of_weights, W)
    print("vjp, the value:    ", prediction)
    print("vjp, the cotangent:", *pull_back(u))
    print("u times the Jacobian:", u @ tk.jacrev(of_weights)(W))
    print("once more, from ones:", *pull_back(tk.ones_like(u)))


# ---- interpreters ------------------------------------------------------------------------------------------


def expressions() -> None:
    """The operations are a language. One interpreter of it computes nothing, and writes down what was said."""
    title("An interpreter that prints")
    t1 = tk.new((2, 2), [1.0, 2.0, 3.0, 4.0], backend="string")
    t2 = tk.new((2, 2), [5.0, 6.0, 7.0, 8.0], backend="string")
    print(t1.exp() + t2.log())
    print(tk.symbol("A").exp() + tk.symbol("B").log())

    # Derivatives are written in the same language, so they print as well.
    print("tanh'(x) =", tk.grad(tk.tanh)(tk.symbol("x")))


def levels() -> None:
    """A transform puts one more interpreter on top of what was there; nesting makes a tower."""
    title("Interpreters that differentiate")

    # Forward computes on pairs of a value and its tangent: dual numbers. By the product rule,
    # (3, 4) * (5, 7) = (3 * 5, 3 * 7 + 5 * 4).
    value, tangent = tk.jvp(lambda x, y: x * y, (3.0, 5.0), (4.0, 7.0))
    print("(3, 4) * (5, 7) =", (value.item(), tangent.item()))

    # The same without the wrapping. A constant has no tangent, not even one of zeros, and none is multiplied.
    string = String()
    forward: Forward[Expression] = Forward(string)
    x = Dual(string.symbol("x"), string.symbol("dx"))
    c: Dual[Expression] = Dual(string.symbol("c"), None)
    print("the tangent of x * c:", forward.mul(x, c).tangent)
    print("the tangent of c * c:", forward.mul(c, c).tangent)

    # Reverse computes at once, and keeps a tape of what it did for the way back.
    def recorded(x: tk.Tensor) -> tk.Tensor:
        y = (x * x).sin() + 1.0
        assert isinstance(y.interpreter, Reverse)
        print("on the tape:", [record[0].name for record in y.interpreter.tape if record is not None])
        return y

    tk.grad(recorded)(2.0)

    # Each nested call stands on the one around it, so a value may be a pair of pairs, or a pair on a tape.
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

    # The inner call's variable is not the outer one's, however alike they look: x * d(x + y)/dy is x.
    print("not confused:", tk.grad(lambda x: x * tk.grad(lambda y: x + y)(1.0))(1.0))


def fusion() -> None:
    """A matrix product is a product and a sum, and must never build the product; Fuse sees to that."""
    title("An interpreter that fuses")
    string = String()
    fuse = tk.Fuse(string)

    def symbol(name: str, shape: tuple[int, ...]) -> tk.Tensor:
        return tk.Tensor(fuse, fuse.hold(string.symbol(name, shape)))

    a, b = symbol("A", (2, 3)), symbol("B", (2, 3))
    print((a * b).sum(0, keepdims=True))
    print((a * b).sum(0, keepdims=True).sum(1, keepdims=True))
    print(a.sum(0, keepdims=True).sum(1, keepdims=True))
    print((a.sum(0, keepdims=True) * b.sum(0, keepdims=True)).sum(1, keepdims=True))

    # Without Fuse, a matrix product has all m * n * k products in it.
    print("plain:", tk.symbol("A", (2, 3)) @ tk.symbol("C", (3, 4)))

    # With it, there is one contraction of two small operands; and one in each derivative, though nobody wrote
    # those.
    c, cotangent = symbol("C", (3, 4)), symbol("G", (2, 4))
    product, pull_back = tk.vjp(tk.matmul, a, c)
    print("fused:", product)
    for name, pulled in zip("AC", pull_back(cotangent), strict=True):
        print(f"pulled back to {name}:", pulled)


def shapes() -> None:
    """Rules of differentiation ask for shapes. ShapeTracker knows them without asking a backend that delays work."""
    title("An interpreter that knows shapes")

    class Shapeless(String):
        """A backend that would have to compute in order to tell a shape."""

        def shape(self, x: object) -> tuple[int, ...]:
            raise RuntimeError("nobody should ask me")

    with tk.use_backend(tk.ShapeTracker(Shapeless())):
        x = tk.new((2, 3), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        print("x @ x.T has shape", (x @ x.T).shape)
        print("its gradient has shape", tk.grad(lambda x: (x @ x.T).sum())(x).shape)


def main() -> None:
    """Walk through everything."""
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
