"""Names of other libraries and their equivalents here, for error messages about unknown names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from tensorken_core.tensor.tensor import Tensor

MODULE: Mapping[str, str] = {
    "Array": "tk.Tensor",
    "GradientTape": "tk.grad(f)",
    "PRNGKey": "tk.random.key(seed)",
    "Variable": "tk.tensor(data)",
    "array_str": "str(x)",
    "as_tensor": "tk.asarray(data)",
    "associative_scan": "tk.scan, which goes step by step",
    "betainc": "tk.special.betainc",
    "betaln": "tk.special.betaln",
    "block_until_ready": "x.item(), which waits",
    "bmm": "tk.matmul(a, b)",
    "cat": "tk.concatenate(xs, axis)",
    "clamp": "tk.clip(x, min, max)",
    "complex128": "a pair of tensors: there are no complex dtypes",
    "complex64": "a pair of tensors: there are no complex dtypes",
    "device": "x.to(name), and tk.devices()",
    "device_put": "x.to(name, placement)",
    "digamma": "tk.special.digamma",
    "div": "tk.divide(a, b)",
    "double": "tk.float64",
    "entr": "tk.special.entr",
    "eq": "tk.equal(a, b)",
    "erfc": "tk.special.erfc",
    "erfcx": "tk.special.erfcx",
    "eval_shape": "tk.trace(f)(x).outputs, which have shapes and dtypes",
    "expit": "tk.special.expit",
    "float_": "tk.float64",
    "from_numpy": "tk.tensor(array)",
    "gammainc": "tk.special.gammainc",
    "gammaincc": "tk.special.gammaincc",
    "gammaln": "tk.special.gammaln(x)",
    "gather": "tk.take_along_axis(x, indices, axis)",
    "ge": "tk.greater_equal(a, b)",
    "gt": "tk.greater(a, b)",
    "half": "tk.float16",
    "i0e": "tk.special.i0e",
    "i1": "tk.special.i1",
    "i1e": "tk.special.i1e",
    "in1d": "tk.isin(x, values)",
    "index_select": "tk.take(x, indices, axis)",
    "int_": "tk.int64",
    "kl_div": "tk.special.kl_div",
    "lax": "tk itself, which has cond, scan, while_loop and fori_loop",
    "le": "tk.less_equal(a, b)",
    "lgamma": "tk.special.gammaln(x)",
    "load": "tk.Program.load for programs, tensorken_nn.checkpoints.load for trees of tensors",
    "log_ndtr": "tk.special.log_ndtr",
    "logit": "tk.special.logit",
    "long": "tk.int64",
    "lt": "tk.less(a, b)",
    "make_jaxpr": "tk.trace(f)(x)",
    "manual_seed": "tk.random.key(seed): no function has a state",
    "masked_fill": "tk.where(mask, value, x)",
    "mm": "tk.matmul(a, b)",
    "mul": "tk.multiply(a, b)",
    "ndarray": "tk.Tensor",
    "ndtr": "tk.special.ndtr",
    "ndtri": "tk.special.ndtri",
    "ne": "tk.not_equal(a, b)",
    "neg": "tk.negative(x)",
    "nn": "tensorken_nn (import tensorken_nn as nn)",
    "no_grad": "the function itself: only tk.grad and its relatives differentiate; see tk.stop_gradient(x)",
    "numpy": "tk itself, which has numpy's names",
    "optim": "tensorken_nn, which has the optimisers",
    "permute": "tk.permute_dims(x, axes)",
    "polygamma": "tk.special.polygamma",
    "psi": "tk.special.psi",
    "rand": "tk.random.uniform(key, shape)",
    "randint": "tk.random.randint(key, shape, low, high)",
    "rel_entr": "tk.special.rel_entr",
    "remat": "tk.checkpoint(f)",
    "save": "program.save for programs, tensorken_nn.checkpoints.save for trees of tensors",
    "sub": "tk.subtract(a, b)",
    "switch": "tk.cond, nested",
    "trapz": "tk.trapezoid(y, x)",
    "tree_map": "tk.tree.map(f, tree)",
    "tree_util": "tk.tree",
    "unsqueeze": "tk.expand_dims(x, axis)",
    "with_sharding_constraint": "tk.with_placement(x, placement)",
    "xlog1py": "tk.special.xlog1py",
    "xlogy": "tk.special.xlogy",
    "zeta": "tk.special.zeta",
}
"""Names looked up in the module `tensorken`."""

METHODS: Mapping[str, str] = {
    "add_": "x + y: tensors are immutable",
    "backward": "tk.grad(f)(x), the gradient of a function",
    "block_until_ready": "x.item(), which waits",
    "bool": "x.astype(tk.bool)",
    "clamp": "x.clip(min, max)",
    "clone": "x itself: tensors are immutable",
    "contiguous": "x itself: the memory layout of a tensor is hidden",
    "cpu": 'x.to("numpy")',
    "cuda": "x.to(name)",
    "detach": "tk.stop_gradient(x)",
    "dim": "x.ndim",
    "double": "x.astype(tk.float64)",
    "fill": "tk.full_like(x, value): tensors are immutable",
    "float": "x.astype(tk.float32)",
    "grad": "tk.grad(f)(x), the gradient of a function",
    "half": "x.astype(tk.float16)",
    "index_select": "tk.take(x, indices, axis)",
    "int": "x.astype(tk.int32)",
    "long": "x.astype(tk.int64)",
    "masked_fill": "tk.where(mask, value, x)",
    "matmul": "x @ y",
    "mm": "x @ y",
    "mul": "x * y",
    "norm": "tk.linalg.norm(x)",
    "numel": "x.size",
    "pow": "x**y",
    "requires_grad": "tk.grad(f): nothing has to be switched on",
    "requires_grad_": "tk.grad(f): nothing has to be switched on",
    "scatter": "x.at[i].set(v)",
    "sub": "x - y",
    "t": "x.T",
    "tobytes": "numpy.asarray(x).tobytes()",
    "type": "x.astype(dtype)",
    "unsqueeze": "tk.expand_dims(x, axis)",
    "view": "x.reshape(shape)",
    "zero_": "tk.zeros_like(x): tensors are immutable",
}
"""Names looked up on a tensor."""

RANDOM: Mapping[str, str] = {
    "PRNGKey": "tk.random.key(seed)",
    "default_rng": "tk.random.key(seed)",
    "manual_seed": "tk.random.key(seed): no function has a state",
    "rand": "tk.random.uniform(key, shape)",
    "randn": "tk.random.normal(key, shape)",
    "random": "tk.random.uniform(key, shape)",
    "seed": "tk.random.key(seed): no function has a state",
    "shuffle": "tk.random.permutation(key, x)",
    "standard_normal": "tk.random.normal(key, shape)",
}
"""Names looked up in the module `tensorken.random`."""


def missing(what: str, name: str, table: Mapping[str, str]) -> AttributeError | None:
    """The error for a name of another library, with the equivalent in tensorken; None for any other name."""
    equivalent = table.get(name)
    return (
        None if equivalent is None else AttributeError(f"{what} has no attribute {name!r}; use {equivalent}")
    )


class NameElsewhere:
    """The descriptor of a name that tensors have only in other libraries: reading it is an error, which names the
    equivalent.

    A `__getattr__` of Tensor would need no descriptors, but it makes every read of an attribute five times as slow in
    Python 3.11.
    """

    __slots__ = ("_equivalent", "_name")

    def __init__(self, name: str, equivalent: str) -> None:
        self._name, self._equivalent = name, equivalent

    def __get__(self, x: Any, owner: type | None = None) -> NoReturn:
        raise AttributeError(
            f"a tensor has no attribute {self._name!r}; use {self._equivalent}", name=self._name, obj=x
        )


def attach(equivalents: Mapping[str, str]) -> None:
    """Let reading names on a tensor name their equivalents; names that tensors have are left alone."""
    for name, equivalent in equivalents.items():
        if not hasattr(Tensor, name):
            setattr(Tensor, name, NameElsewhere(name, equivalent))
