"""The built-in functions of vertices: n-ary sums and products, and the functions of tensorken's ops.

Functions of floats return floats, and follow IEEE where Python raises: 1 / 0 is infinite, log(-1) is NaN. If an
argument is a tensor, they are tensorken's functions, which broadcast, promote dtypes and run on its backend.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError
from tensorken_core.language.op import OPS
from tensorken_nn.vertex.derivatives import vjp_of
from tensorken_nn.vertex.function import Function
from tensorken_nn.vertex.node import OPERATORS, Constant, Value, Vertex, as_vertex

# ---- sums and products ---------------------------------------------------------------------------------------


class Add(Function):
    """The sum of any number of arguments, from left to right."""

    @staticmethod
    def forward(*args: Vertex) -> Vertex:
        return Vertex(functools.reduce(operator.add, [v.value for v in args]))

    @staticmethod
    def backward(*args: Vertex) -> tuple[Value, ...]:
        return (1.0,) * len(args)


class Mult(Function):
    """The product of any number of arguments.

    The derivative with respect to an argument is the product of the other arguments, computed for all arguments by two
    cumulative products, one from each end. There is no division, so zeros are exact.
    """

    @staticmethod
    def forward(*args: Vertex) -> Vertex:
        return Vertex(functools.reduce(operator.mul, [v.value for v in args]))

    @staticmethod
    def backward(*args: Vertex) -> tuple[Value, ...]:
        values = [v.value for v in args]
        before = _running_products(values[:-1])
        after = _running_products(values[:0:-1])
        return tuple(map(operator.mul, before, reversed(after)))


def _running_products(factors: Sequence[Any]) -> list[Any]:
    """1, the first factor, the product of the first two, and so on."""
    products: list[Any] = [1.0]
    for factor in factors:
        products.append(products[-1] * factor)
    return products


add = Add()
mult = Mult()


# ---- functions of tensors ------------------------------------------------------------------------------------


def lift(function: Callable[..., Any], name: str | None = None) -> Callable[..., Vertex]:
    """Lift a function of tensors to vertices that hold tensors; tensorken computes its derivative.

    Args:
        function: a function of tensors, and keyword arguments that are passed through, that returns one tensor.
        name: for error messages; by default the function's own.

    Raises:
        ArgumentError: when called, if no argument holds a tensor, or the result is not a tensor.

    >>> import tensorken as tk
    >>> norm = lift(lambda x: tk.sqrt((x * x).sum()))
    >>> x = Vertex(tk.tensor([3.0, 4.0]))
    >>> y = norm(x)
    >>> y.backward()
    >>> y.value.item(), x.grad
    (5.0, tensor([0.6, 0.8]))
    """
    label = getattr(function, "__name__", "function") if name is None else name

    def lifted(*args: Any, **keywords: Any) -> Vertex:
        parents = tuple(map(as_vertex, args))
        tensors = [v.value for v in parents if isinstance(v.value, Tensor)]
        if not tensors:
            raise ArgumentError(f"{label}: need a tensor among the arguments; write Vertex(tk.tensor(...))")
        dtype = tk.result_type(*tensors)
        values = [
            v.value
            if isinstance(v, Constant) or isinstance(v.value, Tensor)
            else tensors[0].constant([v.value], dtype, ())
            for v in parents
        ]
        active = [i for i, v in enumerate(parents) if not isinstance(v, Constant)]

        def of_active(*active_values: Tensor) -> Any:
            arguments = list(values)
            for i, x in zip(active, active_values, strict=True):
                arguments[i] = x
            return function(*arguments, **keywords)

        y, pull_tensors_back = tk.vjp(of_active, *[values[i] for i in active])
        if not isinstance(y, Tensor):
            raise ArgumentError(f"{label}: need one tensor as the result, got {type(y).__name__}")

        def pull_back(z: Vertex) -> Iterable[Value | None]:
            contributions: list[Value | None] = [None] * len(parents)
            for i, contribution in zip(active, pull_tensors_back(z.grad), strict=True):
                contributions[i] = (
                    contribution if isinstance(parents[i].value, Tensor) else float(contribution)
                )
            return contributions

        return Vertex(y, parents, pull_back)

    lifted.__name__ = label
    return lifted


matmul = lift(tk.matmul)
mean = lift(tk.mean)
sum = lift(tk.sum)


# ---- elementwise functions -----------------------------------------------------------------------------------


class Elementwise(Function):
    """The function of an elementwise op of tensorken, with the derivatives of the op table.

    Args:
        op: the name of the op.
        of_tensors: the function for tensors, with broadcasting and dtype promotion.

    >>> sine = Elementwise("sin", tk.sin)
    >>> sine(Vertex(0.0)), sine.backward(Vertex(0.0))
    (Vertex(0.0), (1.0,))
    """

    def __init__(self, op: str, of_tensors: Callable[..., Tensor]) -> None:
        definition = OPS[op]
        assert definition.scalar is not None and definition.arity is not None
        self.name = op
        self.arity = definition.arity
        self._of_floats = definition.scalar
        self._of_tensors = of_tensors
        self._lifted = lift(of_tensors, op)
        self._pull = vjp_of(op)

    def __call__(self, *args: Any) -> Vertex:
        if len(args) != self.arity:
            raise ArgumentError(
                f"{self.name}: need {self.arity} argument{'s' * (self.arity > 1)}, got {len(args)}"
            )
        parents = tuple(map(as_vertex, args))
        values = [v.value for v in parents]
        if any([isinstance(x, Tensor) for x in values]):
            return self._lifted(*parents)
        return Vertex(self._of_floats(*values), parents, self.pull_back)

    def forward(self, *args: Vertex) -> Vertex:  # type: ignore[override]
        return Vertex(self(*args).value)

    def backward(self, *args: Vertex) -> tuple[Value, ...]:  # type: ignore[override]
        values = [v.value for v in args]
        if any([isinstance(x, Tensor) for x in values]):
            y, pull_back = tk.vjp(self._of_tensors, *tk.broadcast_arrays(*values))
            slopes: tuple[Value, ...] = pull_back(y.ones_like())
            return slopes
        return self._pull(1.0, self._of_floats(*values), *values)

    def pull_back(self, z: Vertex) -> tuple[Value, ...]:
        """The contributions of a result to the gradients of its parents, which are floats."""
        return self._pull(z.grad, z.value, *[v.value for v in z.parents])


negative = Elementwise("neg", operator.neg)
subtract = Elementwise("sub", operator.sub)
divide = Elementwise("div", operator.truediv)
remainder = Elementwise("remainder", operator.mod)
pow = Elementwise("pow", operator.pow)
square = Elementwise("square", tk.square)
reciprocal = Elementwise("reciprocal", tk.reciprocal)
abs = Elementwise("abs", tk.abs)
sqrt = Elementwise("sqrt", tk.sqrt)
maximum = Elementwise("maximum", tk.maximum)
minimum = Elementwise("minimum", tk.minimum)
exp = Elementwise("exp", tk.exp)
expm1 = Elementwise("expm1", tk.expm1)
log = Elementwise("log", tk.log)
log1p = Elementwise("log1p", tk.log1p)
sin = Elementwise("sin", tk.sin)
cos = Elementwise("cos", tk.cos)
tan = Elementwise("tan", tk.tan)
asin = Elementwise("asin", tk.asin)
acos = Elementwise("acos", tk.acos)
atan = Elementwise("atan", tk.atan)
sinh = Elementwise("sinh", tk.sinh)
cosh = Elementwise("cosh", tk.cosh)
tanh = Elementwise("tanh", tk.tanh)
erf = Elementwise("erf", tk.erf)
relu = Elementwise("relu", tk.relu)
sigmoid = Elementwise("sigmoid", tk.sigmoid)
softplus = Elementwise("softplus", tk.softplus)

OPERATORS |= {
    "abs": abs,
    "add": add,
    "divide": divide,
    "matmul": matmul,
    "mult": mult,
    "negative": negative,
    "pow": pow,
    "remainder": remainder,
    "square": square,
    "subtract": subtract,
}


# ---- losses --------------------------------------------------------------------------------------------------


def squared_error(prediction: Any, target: Any) -> Vertex:
    """(prediction - target)**2.

    >>> squared_error(Vertex(3.0), Vertex(1.0))
    Vertex(4.0)
    """
    return square(subtract(prediction, target))
