"""The language, tensors and transforms work without `tensorken`, with only a backend."""

from __future__ import annotations

import subprocess
import sys

import pytest

ALONE = """
import importlib.util, sys, types

package = types.ModuleType("tensorken")  # its own __init__ would load the functions
package.__path__ = importlib.util.find_spec("tensorken").submodule_search_locations
sys.modules["tensorken"] = package

from tensorken_core.tensor.tensor import Tensor, as_tensor
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_core.language.dtypes import float64
from tensorken_core.language.interpreter import Interpreter
from tensorken_core.transforms.custom_rules import custom_jvp, custom_vjp
from tensorken_core.transforms.jacobian import hessian, jacfwd, jacrev
from tensorken_core.transforms.checkpoint import checkpoint
from tensorken_core.transforms.grad import grad, jvp, value_and_grad, vjp
from tensorken_core.transforms.vmap import vmap
from tensorken_reference.backend import Reference

backend = Reference()
Interpreter.default = staticmethod(lambda: backend)
x = Tensor.from_numbers(backend, [1.0, 2.0, 3.0], float64)
"""

CASES = {
    "a tensor of numbers": """
assert x.tolist() == [1.0, 2.0, 3.0] and x.shape == (3,)
assert repr(x) == "tensor([1.0, 2.0, 3.0], dtype=float64)"
assert (as_tensor(2).item(), as_tensor([2.5]).item(), float(x.sum())) == (2, 2.5, 6.0)
""",
    "operators and lists beside a tensor": """
assert (x + [1, 1, 1]).tolist() == [2.0, 3.0, 4.0]
assert (2 * x - 1.0).tolist() == [1.0, 3.0, 5.0]
assert (x > 1.5).where(x, 0.0).tolist() == [0.0, 2.0, 3.0]
""",
    "data that is no number": """
for bad in ({"a": 1}, "text", [[1.0], [1.0, 2.0]]):
    try:
        as_tensor(bad)
    except (ArgumentError, ShapeError) as error:
        assert str(error).startswith("tensor: ")
    else:
        raise AssertionError(bad)
""",
    "grad": """
assert grad(lambda x: (x * x).sum())(x).tolist() == [2.0, 4.0, 6.0]
assert grad(lambda x: x * x)(3.0).item() == 6.0
value, gradient = value_and_grad(lambda x: (x * x).sum())(x)
assert (value.item(), gradient.tolist()) == (14.0, [2.0, 4.0, 6.0])
""",
    "jvp and vjp": """
e = Tensor.from_numbers(backend, [1.0, 0.0, 0.0], float64)
assert jvp(lambda x: x * x, (x,), (e,))[1].tolist() == [2.0, 0.0, 0.0]
assert vjp(lambda x: x * x, x)[1](e)[0].tolist() == [2.0, 0.0, 0.0]
assert vjp(lambda x: 2.0, x)[0].item() == 2.0
""",
    "jacobians": """
diagonal = [[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 6.0]]
assert jacfwd(lambda x: x * x)(x).tolist() == jacrev(lambda x: x * x)(x).tolist() == diagonal
assert hessian(lambda x: (x * x * x).sum() / 3.0)(x).tolist() == diagonal
""",
    "vmap": """
assert vmap(lambda x: x * 2.0)(x).tolist() == [2.0, 4.0, 6.0]
assert vmap(grad(lambda x: x * x))(x).tolist() == [2.0, 4.0, 6.0]
""",
    "repr inside a transform": """
seen = []
grad(lambda x: (seen.append(repr(x)), x.sum())[1])(x)
assert seen == ["<tensor([1.0, 2.0, 3.0], dtype=float64) inside grad>"], seen
vmap(lambda x: (seen.append(repr(x)), x)[1])(x)
assert seen[1] == "<<tensor, shape=(), dtype=float64> inside vmap>", seen
""",
    "a custom JVP": """
@custom_jvp
def square(x):
    return x * x

@square.defjvp
def rule(primals, tangents):
    return square(*primals), 3.0 * primals[0] * tangents[0]

assert grad(lambda x: square(x).sum())(x).tolist() == [3.0, 6.0, 9.0]
""",
    "a custom VJP": """
@custom_vjp
def square(x):
    return x * x

square.defvjp(lambda x: (square(x), x), lambda x, g: (5.0 * x * g,))
assert grad(lambda x: square(x).sum())(x).tolist() == [5.0, 10.0, 15.0]
""",
    "checkpoint": """
assert grad(checkpoint(lambda x: x.sin().sum()))(x).tolist() == x.cos().tolist()
""",
}

NOTHING_ELSE = """
loaded = {name for name in sys.modules if name.startswith("tensorken.")}
assert not loaded, loaded
"""


@pytest.mark.parametrize("name", CASES)
def test_without_functions(name: str) -> None:
    script = ALONE + CASES[name] + NOTHING_ELSE
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
