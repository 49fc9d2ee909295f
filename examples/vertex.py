"""Automatic differentiation with objects: custom functions, vectors and matrices, and two experiments with networks.

    python examples/vertex.py

The experiments are shortened; `python examples/vertex.py --full` runs them completely, which takes about half an hour.
`tensorken_nn.experiments` has the same experiments as compiled functions, which take a minute.
"""

from __future__ import annotations

import math
import random
import sys

from tensorken_nn.vertex import (
    Adam,
    Function,
    He,
    Linear,
    Matrix,
    MomentumSGD,
    Sequential,
    Vector,
    Vertex,
    add,
    mult,
    relu,
    squared_error,
)


def title(text: str) -> None:
    """Print a heading."""
    print(f"\n{text}\n{'-' * len(text)}")


# ---- vertices ------------------------------------------------------------------------------------------------


def derivatives() -> None:
    """An operator makes a vertex that knows its parents; `backward` follows them and stores a gradient in each."""
    title("Derivatives")
    x, y = Vertex(3.0), Vertex(-2.0)
    z = x * y + x**2
    z.backward()
    print(z, z.parents)
    print(x.grad, y.grad)

    # Gradients accumulate until they are reset.
    z.backward()
    print(x.grad)
    z.zero_grad()
    print(x.grad)


class Interest(Function):
    """The future value of an amount at an interest rate after a number of years."""

    @staticmethod
    def forward(*args: Vertex) -> Vertex:
        amount, rate, years = [v.value for v in args]
        return Vertex(amount * (1.0 + rate) ** years)

    @staticmethod
    def backward(*args: Vertex) -> tuple[float, ...]:
        amount, rate, years = [v.value for v in args]
        growth = (1.0 + rate) ** years
        return growth, amount * years * growth / (1.0 + rate), amount * growth * math.log(1.0 + rate)


def functions() -> None:
    """A function defines its result, and its derivative with respect to each argument."""
    title("Functions")
    amount, rate, years = Vertex(100.0), Vertex(0.05), Vertex(10.0)
    interest = Interest()
    result = interest(amount, rate, years)
    result.backward()
    print(f"{result.value:.2f}")
    print(f"{amount.grad:.4f}, {rate.grad:.2f}, {years.grad:.4f}")

    # Sums and products take any number of arguments. The derivative of a product with respect to one of them is the
    # product of the others, computed without a division, so that zeros work.
    factors = [Vertex(2.0), Vertex(0.0), Vertex(5.0)]
    product = mult(*factors)
    product.backward()
    print(product, [v.grad for v in factors])
    print(add(*factors))


def matrices() -> None:
    """Vectors and matrices consist of vertices."""
    title("Vectors and matrices")
    matrix, vector = Matrix([[1.0, 2.0], [3.0, 4.0]]), Vector(1.0, -1.0)
    print(matrix @ vector, vector.dot(vector))
    (matrix @ vector)[0].backward()
    print([v.grad for v in vector], matrix[0, 1].grad, matrix[1, 1].grad)


# ---- experiments ---------------------------------------------------------------------------------------------


def linear_experiment(samples: int, epochs: int) -> None:
    """A linear layer learns a linear function from noisy samples, one at a time."""
    title("A linear law")
    random.seed(42)
    inputs = 5
    X = Matrix([[random.uniform(-1, 1) for _ in range(inputs)] for _ in range(samples)])
    beta = Vector([random.gauss(-1, 1) for _ in range(inputs)])
    noise = Vector([random.gauss(0, 0.1) for _ in range(samples)])
    y = X @ beta + noise

    model = Sequential([Linear(inputs, 1, bias=False)])
    optimiser = MomentumSGD(model.parameters, nu=0.01, momentum=0.9)
    train(model, optimiser, X, y, epochs)
    for true, learned in zip(beta, model.parameters["0"]["W"][0], strict=True):
        print(f"{true} - {learned}")


def nonlinear_experiment(samples: int, epochs: int) -> None:
    """A network of ten layers learns a function with a jump at 0 from noisy samples, one at a time."""
    title("A function with a jump")
    random.seed(42)
    X = Matrix([[random.uniform(-1, 1)] for _ in range(samples)])
    noise = Vector([random.gauss(0, 0.1) for _ in range(samples)])
    y = Vector([jump(row[0].value) for row in X]) + noise

    hidden = [
        Linear(1 if seed == 1 else 10, 10, activation=relu, weight_initialiser=He(), seed=seed)
        for seed in range(1, 10)
    ]
    model = Sequential([*hidden, Linear(10, 1, seed=5)])
    optimiser = Adam(model.parameters, nu=0.001, beta_1=0.9, beta_2=0.999)
    train(model, optimiser, X, y, epochs)


def jump(x: float) -> float:
    """A parabola for negative x, else a growing wave."""
    return -3 * x**2 - 2 if x < 0 else math.exp(1.5 * x) * math.sin(10 * x)


def train(model: Sequential, optimiser: Adam | MomentumSGD, X: Matrix, y: Vector, epochs: int) -> None:
    """Train for a number of epochs, with an optimiser step after each sample."""
    samples = len(X)
    for i in range(1, epochs + 1):
        loss_total = 0.0
        for x, target in zip(X, y, strict=True):
            loss = squared_error(model(x)[0], target) / samples
            loss_total += loss.value
            loss.backward()
            optimiser.step()
            loss.zero_grad()
        print(f"{i} / {epochs} - {loss_total=}")


def draw(figure) -> None:
    """The function with a jump at 0, and two hundred noisy samples of it, from which the network learns."""
    axes = figure.subplots()
    random.seed(42)
    samples = [random.uniform(-1, 1) for _ in range(200)]
    axes.plot(samples, [jump(x) + random.gauss(0, 0.1) for x in samples], "o", color="C1", markersize=2)
    for side in ([-1.0 + i / 100 for i in range(100)], [i / 100 for i in range(101)]):
        axes.plot(side, [jump(x) for x in side], color="C0")
    axes.set(xlabel="x", ylabel="y")


def main() -> None:
    """Run all parts."""
    full = sys.argv[1:] == ["--full"]
    print("Derivatives by objects")
    derivatives()
    functions()
    matrices()
    linear_experiment(*(10_000, 100) if full else (100, 2))
    nonlinear_experiment(*(1000, 100) if full else (20, 2))


if __name__ == "__main__":
    main()
