"""Texts of compiled programs: intermediate representation, assembly, and the table of kernels."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tensorken as tk
from tensorken.programs.compiled import Kernel, kernels_of
from tensorken.programs.execution import with_compiler
from tensorken_core.errors import ArgumentError
from tensorken_llvm.blas import find_blas
from tensorken_llvm.gemm import vectors_of
from tensorken_llvm.plugin import tensorken_compile

X = np.random.default_rng(0).normal(size=(100, 64)).astype("float32")
W = np.random.default_rng(1).normal(size=(64, 32)).astype("float32")


def network(x: tk.Tensor, w: tk.Tensor) -> tk.Tensor:
    return tk.exp(tk.sort(tk.tanh(x @ w) * 2.0, axis=1)).sum(1)


def test_lower_shows_the_optimised_code_of_a_jitted_function() -> None:
    with with_compiler(tensorken_compile, "machine code"):
        lowered = tk.jit(network).lower(X, W)
        text = lowered.as_text("llvm")
        assert re.search(r"^define .*@entry0\(", text, re.MULTILINE)
        assert re.search(r"fmul <\d+ x float>", text)  # after the vectoriser
        assert text.endswith(lowered.as_text("assembly"))
        assert "entry0:" in lowered.as_text("assembly")
        assert lowered.as_text() == lowered.as_text("program") == str(lowered.program)
        with pytest.raises(
            ArgumentError, match=r"'mlir' is no form of 'network' .* program, python, llvm, assembly"
        ):
            lowered.as_text("mlir")


def test_without_a_compiler_there_are_the_forms_of_programs() -> None:
    lowered = tk.jit(network).lower(X, W)
    assert "def network(" in lowered.as_text("python")
    assert len(lowered.kernels()) == 0
    with pytest.raises(ArgumentError, match=r"its forms are program, python \(no compiler shows its code"):
        lowered.as_text("llvm")


@pytest.mark.skipif(find_blas() is None, reason="numpy's BLAS has no known names")
def test_kernels_have_ops_loops_bytes_and_operations() -> None:
    with with_compiler(tensorken_compile, "machine code"):
        f = tk.jit(network)
        kernels = f.lower(X, W).kernels()
        product = "sgemm" if vectors_of("float32") is None else "gemm"
        assert list(kernels) == [
            Kernel(product, ("fused_multiply_add",), (), 4 * (6400 + 2048), 4 * 3200, 2 * 100 * 64 * 32),
            Kernel("kernel", ("tanh", "mul"), (3200,), 4 * 3200, 4 * 3200, 2 * 3200),
            Kernel("numpy", ("sort",), (), 4 * 3200, 4 * 3200, 100 * 32 * 5),
            Kernel("kernel", ("exp", "sum"), (100, 32), 4 * 3200, 4 * 100, 2 * 3200),
        ]
        assert str(kernels).splitlines()[2].split() == "kernel tanh mul 3200 12800 12800 6400".split()
        program = tk.trace(network)(X, W)
        assert kernels_of(program) is None  # before it is compiled
        assert program.explain().endswith(f"\n\n{kernels}")
        assert list(kernels_of(program) or []) == list(kernels)


def test_loops_are_followed_by_what_a_step_runs() -> None:
    with with_compiler(tensorken_compile, "machine code"):
        f = tk.jit(lambda x: tk.scan(lambda c, y: (tk.tanh(c * y), c.sum()), x[0], x)[1])
        rows = list(f.lower(X).kernels())
    place = [row.name for row in rows].index("loop")
    assert rows[place].ops == ("scan",) and rows[place].loops == (100,)
    assert {op for row in rows[place + 1 :] for op in row.ops} == {"mul", "tanh", "sum"}


def test_a_profile_shows_the_kernels_of_the_programs_that_ran() -> None:
    with with_compiler(tensorken_compile, "machine code"):
        f = tk.jit(network)
        f(X, W)
        with tk.profile() as p:
            f(X, W)
            f(X, W)
        assert {name: list(kernels) for name, kernels in p.kernels().items()} == {
            "network": list(f.lower(X, W).kernels())
        }


def test_lower_runs_nothing_and_its_program_is_that_of_later_calls() -> None:
    traces = []

    def f(x: tk.Tensor, n: int) -> tk.Tensor:
        traces.append(n)
        return x * n

    jitted = tk.jit(f, static_argnames="n", donate_argnums=0)
    x = tk.ones(3)
    assert "mul(x, 2" in jitted.lower(x, n=2).as_text()
    assert x.tolist() == [1.0, 1.0, 1.0]  # not donated
    assert jitted(x, n=2).tolist() == [2.0, 2.0, 2.0]
    assert traces == [2]


def test_transforms_of_a_jitted_function_do_not_have_its_programs() -> None:
    f = tk.jit(lambda x: tk.sin(x).sum())
    assert "cos" in tk.grad(f).lower(tk.ones(3)).as_text()  # a jitted function, too
    for transform in (tk.vmap, tk.jacfwd, tk.jacrev, tk.hessian, tk.checkpoint):
        lower = getattr(transform(f), "lower", None)
        assert lower is None or lower is not f.lower


def test_the_page_shows_the_kernels(capsys: pytest.CaptureFixture[str]) -> None:
    page = Path(__file__).parents[3] / "docs" / "llvm.md"
    (code, shown) = re.findall(
        r"```python elsewhere\n(.*?)```\n\n```text\n(.*?)```", page.read_text("utf-8"), re.S
    )[0]
    with with_compiler(tensorken_compile, "machine code"):
        names: dict[str, object] = {}
        exec(code, names)
        assert capsys.readouterr().out == shown
        assert str(names["code"]).startswith("; ModuleID")


def test_without_llvmlite_numpy_runs_programs_and_one_warning_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import warnings

    from tensorken_llvm import plugin

    def missing(name: str) -> None:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(plugin, "importlib", SimpleNamespace(import_module=missing))
    for cached in (plugin.fault, plugin._warn):
        cached.cache_clear()
    try:
        with with_compiler(tensorken_compile, "machine code"), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for scale in (2.0, 3.0):
                f = tk.jit(lambda x, scale=scale: x * scale)
                assert f(tk.ones(3)).tolist() == [scale] * 3
        (warning,) = caught
        assert "llvmlite cannot be imported (No module named 'llvmlite.binding')" in str(warning.message)
        assert "\n" not in str(warning.message)
        assert plugin.tensorken_report_header() == str(warning.message)
    finally:
        for cached in (plugin.fault, plugin._warn):
            cached.cache_clear()
