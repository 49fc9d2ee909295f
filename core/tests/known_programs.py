"""Programs of realistic functions, for the tests of program forms, and the equality of two programs."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

import tensorken as tk
from core.tests.support import FUSED
from tensorken.programs.forms.files import portable_name
from tensorken.programs.names import all_programs
from tensorken_core.program.program import Equation, Program
from tensorken_core.tensor.tensor import Tensor


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclasses.dataclass(frozen=True)
class Layer:
    w: Any
    b: Any
    name: str = dataclasses.field(default="", metadata={"static": True})


def mlp(params, x, *, scale):
    h = tk.tanh(x @ params["w"] + params["b"])
    return {"h": h, "loss": [(h * h).sum() * scale, None]}


with tk.use_backend(FUSED):
    PARAMS = {"w": tk.tensor([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]), "b": tk.tensor([1.0, -1.0])}
    X = tk.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    BIG = tk.tensor(np.random.default_rng(0).normal(size=(6, 7)).astype("float32"))


def convolved(x, w):
    patches = tk.stack([x[:, i : i + 4] for i in range(3)], axis=-1)
    return tk.softmax(patches @ w, axis=1)


block = tk.checkpoint(lambda x: tk.sin(x) * x)
softplus = tk.elementwise(lambda x: tk.log1p(tk.exp(x)), tk.sigmoid)


def real_programs() -> dict[str, tuple[Program, tuple[Any, ...], dict[str, Any]]]:
    """Programs of functions as people write them, with arguments."""
    made: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
        "mlp": (mlp, (PARAMS, X), {"scale": tk.scalar(2.0)}),
        "gradient": (
            tk.value_and_grad(lambda p, x: mlp(p, x, scale=0.5)["loss"][0]),
            (PARAMS, X),
            {},
        ),
        "convolution": (convolved, (tk.arange(12.0).reshape(2, 6), tk.ones((3, 5))), {}),
        "its gradient": (
            tk.grad(lambda x, w: (convolved(x, w) ** 2.0).sum(), (0, 1)),
            (tk.arange(12.0).reshape(2, 6), tk.ones((3, 5))),
            {},
        ),
        "softmax": (lambda x: tk.log_softmax(x, axis=1).mean(), (X,), {}),
        "big constant": (lambda x: x @ BIG, (tk.ones((2, 6)),), {}),
        "jitted": (
            lambda x: tk.jit(lambda a: a * 2.0 + 1.0)(x) + tk.jit(lambda a: a @ BIG)(x).sum(),
            (tk.ones((3, 6)),),
            {},
        ),
        "batched": (tk.vmap(lambda x: tk.sort(x)[::-1] / x.max()), (X,), {}),
        "many results": (lambda x: tk.linalg.qr(x), (tk.ones((3, 2)),), {}),
        "indices": (
            lambda x, i: (x[i], tk.concatenate([x, x]), x.astype("int32") % 3),
            (X, tk.tensor([1, 0])),
            {},
        ),
        "no arguments": (lambda: {"y": tk.ones(3) * 2.0, "z": BIG}, (), {}),
        "numbers": (
            lambda x: (
                x * float("inf"),
                1.0 / x,
                2.0 - x,
                x < 0.0,
                x == 1.0,
                tk.full(2, float("nan")),
                -x,
                x**3,
            ),
            (X,),
            {},
        ),
        "whole numbers": (
            lambda n: (n * 3 - 1, n // 2, n & 5, n << 1, (n > 1) & (n < 3)),
            (tk.tensor([1, 2, 3]),),
            {},
        ),
        "loops": (
            lambda x, n: (
                tk.scan(lambda c, row: (c * 0.5 + row, (c.sum(), row * n)), x[0], x, reverse=True),
                tk.while_loop(lambda v: v.sum() < 50.0, lambda v: v * 2.0 + n, x),
                tk.fori_loop(0, 3, lambda i, v: v * v - n, x[1]),
                tk.cond(
                    n > 0.0, lambda v: v * n, lambda v: (v - BIG[:2, :3]).sum(axis=0, keepdims=True) + v, x
                ),
            ),
            (X, tk.scalar(0.75)),
            {},
        ),
        "gradients of loops": (
            tk.grad(
                lambda x, n: tk.scan(lambda c, row: (tk.sin(c * n) + row, c), x[0], x)[1].sum() * n, (0, 1)
            ),
            (X, tk.scalar(0.75)),
            {},
        ),
        "batched loops": (
            tk.vmap(
                lambda x: (
                    tk.scan(lambda c, a: (c + a, c * a), x[0], x)[1]
                    + tk.cond(x.sum() > 7.0, lambda v: v, lambda v: -v, x)
                )
            ),
            (X,),
            {},
        ),
        "named": (lambda p: Pair(p.second, p.first * 2.0), (Pair(X, tk.scalar(3.0)),), {}),
    }
    return {
        name: (tk.trace(f)(*args, **keywords), args, keywords) for name, (f, args, keywords) in made.items()
    }


with tk.use_backend(FUSED):
    REAL = real_programs()


def bits(results: Any) -> list[tuple[Any, ...]]:
    """The bits of all tensors in a tree; every NaN has the same bits, since its sign is unspecified."""
    leaves = [(x, np.asarray(x)) for x in tk.tree.leaves(results) if isinstance(x, Tensor)]
    return [
        (
            x.shape,
            x.dtype.name,
            (np.where(np.isnan(a), a.dtype.type(np.nan), a) if a.dtype.kind == "f" else a).tobytes(),
        )
        for x, a in leaves
    ]


def _line(equation: Equation) -> tuple[str, int] | None:
    """The line of an equation, as a file has it."""
    origin = equation.origin
    return None if origin is None else (portable_name(origin.file), origin.line)


def same(a: Program, b: Program) -> bool:
    """Whether two programs are equal up to the identity of their variables."""
    if len(all_programs(a)) != len(all_programs(b)):
        return False
    for p, q in zip(all_programs(a), all_programs(b), strict=True):
        if (str(p), p.arguments, p.result, p.parameters, p.donated) != (
            str(q),
            q.arguments,
            q.result,
            q.parameters,
            q.donated,
        ):
            return False
        for e, f in zip(p.equations, q.equations, strict=True):
            if (e.op.name, _line(e), e.scope) != (f.op.name, _line(f), f.scope):
                return False
        if bits(list(p.constants.values())) != bits(list(q.constants.values())):
            return False
    return True
