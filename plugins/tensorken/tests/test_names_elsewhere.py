"""Every public name of numpy, JAX and PyTorch has an equivalent that exists here, or a reason why there is none."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import math
import pickle
import re
import subprocess
import sys
import warnings
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import tensorken as tk
import tensorken_nn as nn
from core.tests.each import each_of
from tensorken.arrays.elsewhere import methods, names, table
from tensorken_core.errors import ArgumentError, TensorkenError
from tools import foreign_names

pytestmark = pytest.mark.usefixtures("on_numpy")

EVERY = [(path, name) for path, text in names.NAMES.items() for name in text.split()]
OTHERS = [
    (path, name) for path, (exact, _) in table._written().items() for name in exact if path not in names.NAMES
]


def operands(folder: Path) -> dict[str, Any]:
    """Values for the names in the expressions of the table."""
    x = tk.tensor([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]], dtype="float64")
    np.save(folder / "x.npy", np.ones(3))
    return {
        "tk": tk, "nn": nn, "numpy": np, "scipy": scipy, "math": math, "functools": functools, "pickle": pickle,
        **dict.fromkeys(("x", "a", "c", "t", "values", "keys", "logits", "targets", "predictions", "v", "like"), x),
        "y": x + 1.0, "b": 2.0 * x, "l": tk.linalg.cholesky(x), "mask": x > 1, "condition": x[0, 0] > 1,
        "labels": x > 1, "indices": tk.tensor([[0, 1, 2]]), "index": tk.tensor([0, 1, 0]), "kernel": x,
        "xs": [x, x], "trees": [x, x], "choices": [x[0], x[1]], "data": [1.0], "iterable": [1.0], "tree": {"a": x},
        **dict.fromkeys(("i", "axis", "first", "source", "start", "low", "min", "init", "loc", "seed"), 0),
        **dict.fromkeys(("k", "second", "destination", "step", "widths", "value", "max", "correction"), 1),
        **dict.fromkeys(("size", "stop", "repeats", "q", "scale", "shape_parameter", "threshold"), 2),
        "n": 3, "lengths": [1, 2, 3], "high": 5, "beta": 5.0, "p": 0.5, "lmbda": 0.5, "slope": 0.1, "temperature": 1.0,
        "shape": (3, 3), "axes": (1, 0), "positions": [1], "strides": (1, 1), "mode": "constant", "spec": ".2f",
        "bins": tk.tensor([1.0, 2.0]), "coefficients": x[0], "mean": tk.zeros(3), "covariance": tk.eye(3),
        "key": tk.random.key(0), "array": np.ones(3), "formula": "ij,jk", "name": "numpy", "placement": None,
        "f": lambda x, *rest: (tk.asarray(x) ** 2).sum(), "g": abs, "group": None, "kind": "numeric",
        "dtype": "float32", "file": folder / "x.npy", "path": folder / "x", "axis_name": "i", "permutation": [],
    }  # fmt: skip


def expressions() -> set[str]:
    """The equivalents of all names, without remarks."""
    rows = [table.row(path, name) for path, name in EVERY + OTHERS]
    return {row.text.partition(": ")[0] for row in rows if row is not None and row.exists}


def run(expression: str, known: dict[str, Any]) -> None:
    """Evaluate an expression: its names exist, and its functions take its arguments, if not always these values.

    Raises:
        AttributeError, NameError, SyntaxError, TypeError: if they do not.
    """
    with contextlib.suppress(TensorkenError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = eval(expression, known)
        if isinstance(found, contextlib.AbstractContextManager):  # a call of use_backend holds until it ends
            with found:
                pass


def test_every_name_has_a_row() -> None:
    assert not [f"{path}.{name}" for path, name in EVERY if table.row(path, name) is None]


def test_every_equivalent_runs(tmp_path: Path) -> None:
    known = operands(tmp_path)
    for expression in sorted(expressions()):
        try:
            run(expression, known)
        except (AttributeError, NameError, SyntaxError, TypeError) as error:
            raise AssertionError(expression) from error


@each_of(
    ("expression", "error"),
    [
        ("tk.no_such_function(x)", AttributeError),
        ("x.no_such_method(1)", AttributeError),
        ("tk.sum(x, no_such_keyword=1)", TypeError),
        ("tk.matmul(a, no_such_operand)", NameError),
    ],
)
def test_a_wrong_equivalent_is_noticed(expression: str, error: type[Exception], tmp_path: Path) -> None:
    with pytest.raises(error):
        run(expression, operands(tmp_path))


def test_every_other_method_has_its_error() -> None:
    assert set(methods.OTHERS) == {name for path, name in OTHERS if path == "others of tensors"}
    for name in methods.OTHERS:
        with pytest.raises(AttributeError, match=f"a tensor has no attribute '{name}'; "):
            getattr(tk.ones(2), name)


def test_every_written_name_is_of_use() -> None:
    """Each name or pattern of a line is a name of one of the modules of its section."""
    used: dict[tuple[str, int], bool] = {}
    for path, (exact, patterns) in table._written().items():
        for pattern, found in [*exact.items(), *patterns]:
            listed = names.NAMES[path].split() if path in names.NAMES else [pattern]
            any_here = any(fnmatchcase(name, pattern) for name in listed)
            used[pattern, id(found)] = used.get((pattern, id(found)), False) or any_here
    assert not [pattern for (pattern, _), any_here in used.items() if not any_here]


@pytest.mark.parametrize("library", list(names.VERSIONS))
def test_no_name_of_an_installed_library_is_missing(library: str) -> None:
    pytest.importorskip(library)
    installed = importlib.metadata.version(library).partition("+")[0]
    if installed.split(".")[:2] != names.VERSIONS[library].split(".")[:2]:
        pytest.skip(f"the table is of {library} {names.VERSIONS[library]}, not of {installed}")
    for path in foreign_names.SOURCES[library]:
        missing = set(foreign_names.public_names(path)) - set(names.NAMES[path].split())
        assert not missing, "python -m tools.foreign_names --read"


def test_the_page_is_up_to_date() -> None:
    assert foreign_names.PAGE.read_text(encoding="utf-8") == foreign_names.page(), (
        "python -m tools.foreign_names"
    )


@each_of(
    ("read", "message"),
    [
        (lambda: tk.cat, "module 'tensorken' has no attribute 'cat'; use tk.concatenate(xs, axis)"),
        (lambda: tk.lax, "module 'tensorken' has no attribute 'lax'; use tk: it has these names itself"),
        (
            lambda: tk.Linear,
            "module 'tensorken' has no attribute 'Linear'; use nn.Linear; import tensorken_nn as nn",
        ),
        (lambda: tk.GradientTape, "module 'tensorken' has no attribute 'GradientTape'; use tk.grad(f)"),
        (lambda: tk.ones(2).detach(), "a tensor has no attribute 'detach'; use tk.stop_gradient(x)"),
        (lambda: tk.ones(2).view(1, 2), "a tensor has no attribute 'view'; use x.reshape(shape)"),
        (lambda: tk.ones(2).cpu(), "a tensor has no attribute 'cpu'; use x.to(\"numpy\")"),
        (lambda: tk.ones(2).exp_(), "a tensor has no attribute 'exp_'; use x.exp: tensors are immutable"),
        (
            lambda: tk.ones(2).lerp_,
            "a tensor has no attribute 'lerp_'; use a + t * (b - a): tensors are immutable",
        ),
        (lambda: tk.ones(2).hstack, "a tensor has no attribute 'hstack'; use tk.hstack(x)"),
        (
            lambda: tk.random.PRNGKey,
            "module 'tensorken.random' has no attribute 'PRNGKey'; use tk.random.key(seed)",
        ),
        (lambda: tk.random.hypergeometric, "this distribution is not written yet"),
        (
            lambda: tk.linalg.lu_factor,
            "module 'tensorken.linalg' has no attribute 'lu_factor'; use tk.linalg.solve",
        ),
        (
            lambda: tk.special.bessel_j0,
            "there is no such function: polynomials are computed by their recurrences",
        ),
        (
            lambda: tk.special.lgamma,
            "'tensorken.special' has no attribute 'lgamma'; use tk.special.gammaln(x)",
        ),
        (lambda: nn.Dense, "module 'tensorken_nn' has no attribute 'Dense'; use nn.Linear"),
        (lambda: nn.ReLU, "module 'tensorken_nn' has no attribute 'ReLU'; use nn.relu: a function"),
    ],
)
def test_an_unknown_name_is_answered_in_one_line(read: Any, message: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(message)) as caught:
        read()
    assert "\n" not in str(caught.value)


@each_of("owner", [tk, tk.linalg, tk.random, tk.special, nn, tk.ones(1)])
def test_a_name_of_nobody_is_a_plain_error(owner: Any) -> None:
    with pytest.raises(AttributeError, match=r"has no attribute 'no_such_name'$"):
        owner.no_such_name  # noqa: B018 -- reading raises the error
    assert not hasattr(owner, "__no_such_name__")


def test_names_elsewhere_are_absent() -> None:
    for where, owner in (
        ("tk", tk),
        ("tk.linalg", tk.linalg),
        ("tk.random", tk.random),
        ("nn", nn),
        ("x", tk.ones(1)),
    ):
        for path in table.ASKED[where]:
            for name in table._names(path):
                row = table.elsewhere(where, name)
                if row is not None and not hasattr(owner, name):
                    assert name not in dir(owner)


def test_the_table_is_loaded_for_errors_only() -> None:
    code = "import sys, tensorken; assert 'tensorken.arrays.elsewhere.table' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_methods_that_people_try_work() -> None:
    x = tk.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert isinstance(x.numpy(), np.ndarray)
    assert x.nbytes == 16
    assert x.sum(axis=0).tolist() == [4.0, 6.0]


@each_of(
    ("call", "message"),
    [
        (lambda x: x.sum(dim=0), "sum: unexpected argument dim; it is axis here"),
        (lambda x: x.sum(0, keepdim=True), "sum: unexpected argument keepdim; it is keepdims here"),
        (lambda x: tk.nansum(x, dim=0), "nansum: unexpected argument dim; it is axis here"),
        (lambda x: tk.take(x, [0], dim=0), "take: unexpected argument dim; it is axis here"),
        (lambda x: tk.permute_dims(x, dims=(1, 0)), "transpose: unexpected argument dims; it is axes here"),
        (lambda x: x.std(unbiased=False), "std: unexpected argument unbiased; it is correction here"),
        (
            lambda x: tk.quantile(x, 0.5, interpolation="lower"),
            "quantile: unexpected argument interpolation; it is method here",
        ),
        (lambda x: tk.percentile(x, 50, dim=0), "percentile: unexpected argument dim; it is axis here"),
        (lambda x: x.to(tk.float64), "to: float64 is a dtype, not a backend; use x.astype(dtype)"),
    ],
)
def test_a_keyword_of_another_library_is_answered_with_the_one_here(call: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{re.escape(message)}$"):
        call(tk.ones((2, 2)))


@each_of("name", ["sum", "prod", "max", "min"])
def test_reductions_take_initial_values_and_conditions_as_methods(name: str) -> None:
    x = np.array([[1.0, 5.0], [-3.0, 4.0]])
    where = x > 0
    method = getattr(tk.tensor(x), name)
    assert method(axis=0, initial=2.0, where=tk.tensor(where)).tolist() == (
        getattr(x, name)(axis=0, initial=2.0, where=where).tolist()
    )
    assert (
        method(keepdims=True, initial=0.5).tolist() == getattr(x, name)(keepdims=True, initial=0.5).tolist()
    )
    with pytest.raises(TypeError, match="unexpected keyword argument 'no_such_keyword'"):
        method(no_such_keyword=1)
