"""Mistakes in creation, in the use of tensors, between backends, and in transforms."""

from __future__ import annotations

import math
import pickle

import numpy as np

import tensorken as tk
from tensorken_conformance.laws.errors.mistakes import escaped, mistakes, total
from tensorken_core.errors import (
    ArgumentError,
    BackendError,
    DTypeError,
    EscapedTensorError,
    ExchangeError,
    GradientError,
    ImmutableError,
    LinearAlgebraError,
    MixedBackendError,
    ScalarRangeError,
    ShapeError,
    StructureError,
    UnknownBackendError,
)

BOTH = ("{backend}", "Elsewhere()")

# fmt: off
mistakes(
    "numbers",
    ("int-beyond-the-dtype", lambda o: o.ints + 2**40, ScalarRangeError, "add:", "1099511627776", "int32"),
    ("int-below-the-dtype", lambda o: -(2**31) - 1 - o.ints, ScalarRangeError, "sub:", "-2147483649", "int32"),
    ("int-beyond-all-floats", lambda o: o.vector * 10**400, ScalarRangeError, "mul:", "float32"),
    ("data-beyond-the-dtype",
     lambda o: tk.tensor([1, 2**31], backend=o.place), ScalarRangeError, "tensor:", "2147483648", "int32"),
    ("fill-beyond-the-dtype",
     lambda o: tk.full(3, 2**31, "int32", backend=o.place), ScalarRangeError, "full:", "2147483648", "int32"),
    ("infinity-as-an-int",
     lambda o: tk.tensor([1.0, math.inf], "int32", backend=o.place), ScalarRangeError, "tensor:", "inf", "int32"),
    ("nan-as-an-int", lambda o: tk.full((), math.nan, "int32", backend=o.place), ScalarRangeError, "full:", "nan"),
)

mistakes(
    "creation",
    ("ragged-rows", lambda o: tk.tensor([[1, 2], [3]], backend=o.place), ShapeError, "tensor:", "(1,)", "(2,)"),
    ("ragged-tensors", lambda o: tk.tensor([o.vector, o.number]), ShapeError, "stack:", "(3,)", "()"),
    ("tensor-of-none", lambda o: tk.tensor(None, backend=o.place), ArgumentError, "tensor:", "NoneType"),
    ("tensor-of-words", lambda o: tk.tensor(["a"], backend=o.place), ArgumentError, "tensor:", "str"),
    ("tensor-of-a-set", lambda o: tk.tensor({1, 2}, backend=o.place), ArgumentError, "tensor:", "set"),
    ("tensor-of-dates",
     lambda o: tk.tensor(np.array(["2020-01-01"], "M8[D]"), backend=o.place), DTypeError, "tensor:", "datetime64"),
    ("floats-of-complex-numbers",
     lambda o: tk.tensor(np.array([1j]), "float32", backend=o.place), DTypeError, "tensor:", "float32", "x.real"),
    ("too-few-values", lambda o: tk.new((2, 2), [1, 2, 3], backend=o.place), ShapeError, "new:", "(2, 2)", "(3,)"),
    ("negative-size", lambda o: tk.zeros((2, -1), backend=o.place), ShapeError, "zeros:", "(2, -1)"),
    ("fraction-of-a-size", lambda o: tk.ones(o.fraction, backend=o.place), ArgumentError, "ones:", "2.5"),
    ("fill-with-a-word", lambda o: tk.full(3, "x", backend=o.place), ArgumentError, "full:", "'x'"),  # type: ignore[arg-type]
    ("range-without-a-step", lambda o: tk.arange(0, 3, 0, backend=o.place), ArgumentError, "arange:", "0"),
    ("sum-with-a-word", lambda o: o.vector + "a", ArgumentError, "add:", "str"),
    ("product-with-none", lambda o: o.vector * None, ArgumentError, "mul:", "NoneType"),
    ("difference-with-bytes", lambda o: b"a" - o.vector, ArgumentError, "sub:", "bytes"),
)

mistakes(
    "uses",
    ("assignment-to-an-element", lambda o: o.vector.__setitem__(0, 1.0), ImmutableError, "assignment:", "at[i].set"),
    ("truth-of-a-vector", lambda o: bool(o.vector), ArgumentError, "bool:", "(3,)"),
    ("truth-of-a-comparison", lambda o: 1 if o.vector > 0 else 2, ArgumentError, "bool:", "(3,)", "where"),
    ("length-of-a-number", lambda o: len(o.number), ArgumentError, "len:", "()"),
    ("iteration-over-a-number", lambda o: list(o.number), ArgumentError, "iteration:", "()"),
    ("float-as-a-length", lambda o: range(o.number), ArgumentError, "index:", "float32", "()"),
    ("vector-as-a-place", lambda o: [1, 2, 3][o.ints], ArgumentError, "index:", "int32", "(3,)"),
    ("cast-without-a-copy",
     lambda o: np.array(o.vector, "int8", copy=False), ExchangeError, "__array__:", "copy=False"),
    ("inverse-of-a-singular-matrix",
     lambda o: tk.linalg.inv(o.of([[1.0, 2.0], [2.0, 4.0]])), LinearAlgebraError, "inv:", "(2, 2)", "singular"),
    ("root-of-an-indefinite-matrix",
     lambda o: tk.linalg.cholesky(o.of([[1.0, 2.0], [2.0, 1.0]])), LinearAlgebraError, "cholesky:", "(2, 2)"),
)

mistakes(
    "backends",
    ("sum-of-two-backends", lambda o: o.vector + o.elsewhere, MixedBackendError, "add:", BOTH),
    ("choice-between-two-backends",
     lambda o: tk.where(o.bools, o.vector, o.elsewhere), MixedBackendError, "where:", BOTH),
    ("concatenation-of-two-backends",
     lambda o: tk.concatenate([o.elsewhere, o.vector]), MixedBackendError, "concatenate:", BOTH),
    ("gradient-across-two-backends",
     lambda o: tk.grad(lambda a, b: total(a * b), (0, 1))(o.vector, o.elsewhere),
     MixedBackendError, "grad:", BOTH),
    ("operand-from-another-backend-in-a-gradient",
     lambda o: tk.grad(lambda a: total(a * o.elsewhere))(o.vector), MixedBackendError, "mul:", BOTH),
    ("move-inside-a-gradient",
     lambda o: tk.grad(lambda x: total(x.to(o.elsewhere.interpreter)))(o.vector), ArgumentError, "to:", "transform"),
    ("number-as-a-backend", lambda o: o.vector.to(3), ArgumentError, "backend=", "int"),
    ("device-of-an-interpreter",
     lambda o: tk.tensor(1.0, backend=o.place, device="moon"), ArgumentError, "backend=", "device='moon'"),
    ("symbol-where-numbers-are", lambda o: tk.symbol("A", backend=o.place), BackendError, "symbol:", "{backend}"),
)

mistakes(
    "backends",
    ("backend-that-nobody-knows",
     lambda o: o.vector.to("no-such-backend"), UnknownBackendError, "unknown backend 'no-such-backend'"),
    listing=True,
)

mistakes(
    "backends",
    ("device-that-the-backend-has-not",
     lambda o: o.vector.to(o.subject.name.partition(":")[0], "moon"), BackendError, "backend", "{name}", "'moon'"),
    where="installed",
    listing=True,
)

mistakes(
    "transforms",
    ("gradient-of-ints", lambda o: tk.grad(total)(o.ints), GradientError, "grad:", "int32", "(3,)", "[0]"),
    ("gradient-of-bools", lambda o: tk.grad(lambda x: x.sum())(o.bools), GradientError, "grad:", "bool", "(3,)"),
    ("gradient-of-ints-in-a-tree",
     lambda o: tk.grad(lambda p: total(p["a"][1]))({"a": [o.vector, o.ints]}), GradientError, "grad:", '[0]["a"][1]'),
    ("gradient-of-a-vector", lambda o: tk.grad(lambda x: x * x)(o.vector), GradientError, "grad", "(3,)", "jacrev"),
    ("value-and-gradient-of-a-vector",
     lambda o: tk.value_and_grad(lambda x: x)(o.vector), GradientError, "value_and_grad", "(3,)"),
    ("gradient-of-two-results", lambda o: tk.grad(lambda x: (x, x))(o.vector), GradientError, "grad", "2 results"),
    ("gradient-of-nothing", lambda o: tk.grad(lambda x: None)(o.vector), GradientError, "grad", "0 results"),
    ("gradient-of-a-place", lambda o: tk.grad(lambda x: x.argmax())(o.vector), GradientError, "grad", "int32"),
    ("gradient-of-a-tensor", lambda o: tk.grad(total(o.vector)), ArgumentError, "grad:", "Tensor"),
    ("gradient-by-an-argument-too-many",
     lambda o: tk.grad(total, 1)(o.vector), ArgumentError, "grad:", "argnums 1"),
    ("gradient-by-an-argument-twice",
     lambda o: tk.grad(total, (0, -1))(o.vector), ArgumentError, "grad:", "(0, -1)", "twice"),
    ("gradient-by-an-argument-without-use",
     lambda o: tk.grad(lambda a, b: total(a), (0, 1), allow_unused=False)(o.vector, o.vector),
     GradientError, "grad:", "[1]", "allow_unused"),
    ("tangents-of-ints", lambda o: tk.jvp(total, (o.ints,), (o.ints,)), GradientError, "jvp:", "int32"),
    ("tangent-of-another-shape",
     lambda o: tk.jvp(total, (o.vector,), (o.matrix,)), ShapeError, "jvp:", "(2, 3)", "(3,)"),
    ("tangent-of-another-dtype",
     lambda o: tk.jvp(total, (o.vector,), (o.ints,)), GradientError, "jvp:", "int32", "float32"),
    ("tangents-without-primals",
     lambda o: tk.jvp(total, (o.vector,), (o.vector, o.vector)), StructureError, "jvp:", "1", "2"),
    ("cotangent-of-another-shape",
     lambda o: tk.vjp(lambda x: x * x, o.vector)[1](o.matrix), ShapeError, "vjp:", "(2, 3)", "(3,)"),
    ("cotangent-of-another-structure",
     lambda o: tk.vjp(lambda x: (x, x), o.vector)[1](o.vector), StructureError, "vjp:", "tuple of 2"),
    ("batches-of-unequal-sizes",
     lambda o: tk.vmap(lambda a, b: a + b)(o.vector, o.zeros(4)), ShapeError, "vmap:", "3", "4"),
    ("batch-of-a-number", lambda o: tk.vmap(tk.sin)(o.number), ShapeError, "vmap:", "()"),
    ("escaped-operand", lambda o: tk.sin(escaped(o.vector)), EscapedTensorError, "sin:", "grad", "has returned"),
    ("escaped-operand-beside-another",
     lambda o: escaped(o.vector) + o.vector, EscapedTensorError, "add:", "grad", "has returned"),
    ("pickle-inside-a-gradient",
     lambda o: tk.grad(lambda x: pickle.dumps(x))(o.vector), ArgumentError, "pickle:", "transform"),
)
# fmt: on
