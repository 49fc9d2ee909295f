"""pure_callback, io_callback and tk.debug: results, errors, and behaviour under transforms."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from tensorken_core.errors import (
    ArgumentError,
    ConcretizationError,
    DTypeError,
    GradientError,
    ProgramError,
    ShapeError,
    StructureError,
)
from tensorken_reference.backend import Reference
from tensorken_string.backend import String

FLOAT = tk.ShapeDtypeStruct((), "float32")
TRANSFORMED: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "eager": lambda f: f,
    "jit": tk.jit,
    "jit(jit)": lambda f: tk.jit(tk.jit(f)),
    "disable_jit": lambda f: tk.disable_jit()(tk.jit(f)),
    "trace": lambda f: lambda *xs: tk.trace(f)(*xs)(*xs),
}


@pytest.fixture(params=["numpy", "reference"])
def backend(request: pytest.FixtureRequest) -> Any:
    with tk.use_backend(request.param):
        yield request.param


# ---- pure_callback -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["eager", "jit", "jit(jit)", "disable_jit", "trace"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_callback_gets_and_returns_complex_arrays(backend: str, name: str, dtype: str) -> None:
    seen: list[Any] = []

    def f(tree: Any, y: Any) -> Any:
        seen.append((tree["z"], y))
        return {"product": tree["z"] * y, "number": 2j, "real": y}

    z = tk.tensor([1j, 2.0], dtype=dtype)
    y = tk.tensor([3.0, 4.0], dtype=z.real.dtype)
    types = {"product": z, "number": tk.ShapeDtypeStruct((), "complex64"), "real": y}
    result = TRANSFORMED[name](lambda z, y: tk.pure_callback(f, types, {"z": z}, y))(z, y)
    for array in seen[0]:
        assert type(array) is np.ndarray
    assert (seen[0][0].dtype.name, seen[0][0].tolist(), seen[0][1].tolist()) == (dtype, [1j, 2.0], [3.0, 4.0])
    assert {key: (value.dtype.name, value.tolist()) for key, value in result.items()} == {
        "product": (dtype, [3j, 8.0]),
        "number": ("complex64", 2j),
        "real": (y.dtype.name, [3.0, 4.0]),
    }


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
@pytest.mark.parametrize("parts", ["both", "real", "imag"])
def test_a_batch_of_complex_numbers(method: str, parts: str) -> None:
    """Also where only one of the parts differs between the examples."""
    x = np.array([1.0, 2.0, 3.0], "float32")

    def number(x: Any) -> Any:
        return {"both": lambda: tk.complex(x, -x), "real": lambda: x + 2j, "imag": lambda: x * 1j}[parts]()

    def f(x: Any) -> Any:
        z = number(x)
        return tk.pure_callback(np.square, tk.ShapeDtypeStruct((), "complex64"), z, vmap_method=method)

    for transform in (tk.vmap, lambda f: tk.jit(tk.vmap(f))):
        got = transform(f)(tk.tensor(x))
        np.testing.assert_array_equal(np.asarray(got), np.square(np.asarray(number(tk.tensor(x)))))


def test_a_complex_result_is_checked_as_one_result() -> None:
    for value, error, message in (
        (
            np.zeros(2, "complex128"),
            DTypeError,
            "result 0 is complex128 (2,), but result_shape_dtypes says complex64 (2,)",
        ),
        (
            np.zeros(3, "complex64"),
            ShapeError,
            "result 0 is complex64 (3,), but result_shape_dtypes says complex64 (2,)",
        ),
        (
            np.zeros(2, "float32"),
            DTypeError,
            "result 0 is float32 (2,), but result_shape_dtypes says complex64 (2,)",
        ),
    ):
        with pytest.raises(error) as caught:
            tk.pure_callback(lambda value=value: value, tk.ShapeDtypeStruct((2,), "complex64"))
        assert message in str(caught.value)


@pytest.mark.parametrize("name", ["eager", "jit", "trace"])
def test_debugging_shows_complex_numbers(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[Any] = []

    def f(z: Any, n: Any) -> Any:
        tk.debug.print("{} {n:.1f}", z, n=n)
        tk.debug.callback(seen.append, z)
        tk.io_callback(seen.append, None, {"z": z})
        return z * n

    TRANSFORMED[name](f)(tk.tensor([1j, 2.0]), 3.0 + 1.0j)
    assert capsys.readouterr().out == "[0.+1.j 2.+0.j] 3.0+1.0j\n"
    assert [seen[0].tolist(), seen[1]["z"].tolist()] == [[1j, 2.0]] * 2


@pytest.mark.parametrize("name", ["eager", "jit", "jit(jit)", "disable_jit", "trace"])
@pytest.mark.parametrize("dtype", ["bool", "int32", "int64", "float16", "float32", "float64"])
def test_a_callback_gets_and_returns_numpy_arrays(backend: str, name: str, dtype: str) -> None:
    seen: list[Any] = []

    def f(tree: Any, *, y: Any) -> Any:
        seen.append((tree, y))
        return {"sum": y.sum().astype("float64"), "same": (tree["x"], 2)}

    x = tk.tensor([[1, 0], [1, 1]], dtype=dtype)
    types = {"sum": tk.ShapeDtypeStruct((), "float64"), "same": (x, tk.ShapeDtypeStruct((), "int64"))}
    result = TRANSFORMED[name](lambda x: tk.pure_callback(f, types, {"x": x}, y=x))(x)
    ((tree, y),) = seen
    assert type(y) is np.ndarray and y.dtype == dtype and y.tolist() == x.tolist()
    assert tree["x"].tolist() == x.tolist()
    assert result["sum"].item() == y.sum() and result["sum"].dtype is tk.float64
    assert result["same"][0].tolist() == x.tolist() and result["same"][0].dtype is x.dtype
    assert result["same"][1].item() == 2 and result["same"][1].dtype is tk.int64


def test_a_callback_may_change_its_arrays_and_return_them() -> None:
    def f(x: Any) -> Any:
        x *= 2
        return x

    x = tk.tensor([1.0, 2.0])
    kept: list[Any] = []
    y = tk.jit(lambda x: tk.pure_callback(lambda x: kept.append(f(x)) or kept[0], x, x))(x)
    kept[0][0] = 100.0
    assert x.tolist() == [1.0, 2.0] and y.tolist() == [2.0, 4.0]


def test_a_callback_is_not_called_while_a_function_is_traced() -> None:
    calls: list[Any] = []

    def f(x: Any) -> Any:
        calls.append(x)
        return x

    constant = tk.tensor(1.0)
    program = tk.trace(lambda x: x + tk.pure_callback(f, constant, constant))(2.0)
    jitted = tk.jit(lambda x: tk.pure_callback(f, x, x))
    jitted(constant)
    jitted(constant)
    calls.clear()
    outer = tk.trace(lambda x: jitted(constant) + x)(2.0)
    tk.jit(lambda x: program(x) + outer(x)).lower(2.0)
    assert calls == []
    assert program(2.0).item() == outer(2.0).item() == 3.0 and len(calls) == 2


def test_a_call_without_used_results_is_dropped_by_a_program() -> None:
    def never(x: Any) -> Any:
        raise AssertionError("the results are not used")

    assert tk.jit(lambda x: (tk.pure_callback(never, x, x), x)[1])(3.0).item() == 3.0


@pytest.mark.parametrize(
    ("result", "types", "error", "message"),
    [
        (
            lambda x: np.ones(2, "f"),
            FLOAT,
            ShapeError,
            r"result 0 is float32 \(2,\), but .* says float32 \(\)",
        ),
        (lambda x: np.float64(1), FLOAT, DTypeError, r"result 0 is float64 \(\), but .* says float32 \(\)"),
        (lambda x: 1.5, tk.ShapeDtypeStruct((), "int32"), DTypeError, "result 0 is float64"),
        (lambda x: "text", FLOAT, DTypeError, "result 0 is"),
        (lambda x: (x, x), FLOAT, StructureError, "the result: .* expected a leaf, got a tuple of 2"),
        (lambda x: x, (FLOAT, FLOAT), StructureError, "the result: .* expected a tuple of 2"),
    ],
)
@pytest.mark.parametrize("transform", [lambda f: f, tk.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("callback", [tk.pure_callback, tk.io_callback])
def test_another_result_than_promised(
    result: Any, types: Any, error: Any, message: str, transform: Any, callback: Any
) -> None:
    f = transform(lambda x: callback(result, types, x))
    for _ in range(2):
        with pytest.raises(error, match=rf"^{callback.__name__} of <lambda>: {message}"):
            f(1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tk.pure_callback(3, None), "pure_callback: need a function, got int"),
        (
            lambda: tk.io_callback(print, 3, 1.0),
            "leaves with a shape and a dtype, got int; pass tk.ShapeDtypeStruct",
        ),
        (lambda: tk.pure_callback(print, None, "text"), "pure_callback: argument leaf 0: .* str"),
        (
            lambda: tk.pure_callback(print, None, vmap_method="legacy"),
            "vmap_method must be one of 'sequential'",
        ),
        (lambda: tk.debug.print(1.0), "the first argument must be a format string, got float"),
        (lambda: tk.debug.print("{} {}", 1.0), "'{} {}' has more fields than arguments"),
        (lambda: tk.debug.print("{x}", 1.0), "'{x}' has no argument for field 'x'"),
        (lambda: tk.debug.print("{}", 1.0, 2.0), "'{}' has no field for argument 1"),
        (lambda: tk.debug.print("{", 1.0), "'{' is no format: Single '{'"),
        (lambda: tk.debug.callback("text"), "debug.callback: need a function, got str"),
    ],
)
def test_wrong_arguments_are_refused_at_once(call: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
@pytest.mark.parametrize("jitted", [False, True])
def test_a_batch_calls_by_the_method(backend: str, method: str, jitted: bool) -> None:
    shapes: list[Any] = []

    def add(x: Any, y: Any) -> Any:
        shapes.append((x.shape, y.shape))
        return x + y

    def f(x: Any) -> Any:
        return tk.pure_callback(add, x, x, tk.tensor([10.0, 20.0]), vmap_method=method)

    once, twice = tk.vmap(f), tk.vmap(tk.vmap(f))
    xs = tk.arange(6.0).reshape((3, 2))
    assert (tk.jit(once) if jitted else once)(xs).tolist() == (xs + tk.tensor([10.0, 20.0])).tolist()
    expected = {
        "sequential": [((2,), (2,))] * 3,
        "expand_dims": [((3, 2), (1, 2))],
        "broadcast_all": [((3, 2), (3, 2))],
    }
    assert shapes == expected[method]
    shapes.clear()
    stacked = tk.stack([xs, xs])
    assert (tk.jit(twice) if jitted else twice)(stacked).tolist() == (
        stacked + tk.tensor([10.0, 20.0])
    ).tolist()
    nested = {
        "sequential": [((2,), (2,))] * 6,
        "expand_dims": [((2, 3, 2), (1, 1, 2))],
        "broadcast_all": [((2, 3, 2), (2, 3, 2))],
    }
    assert shapes == nested[method]


def test_a_batch_of_no_examples() -> None:
    f = tk.vmap(lambda x: tk.io_callback(lambda x: x, x, x))
    assert f(tk.zeros((0, 2))).shape == (0, 2)


def test_what_vmap_refuses() -> None:
    def io(x: Any) -> Any:
        return tk.io_callback(lambda x: x, x, x)

    xs = tk.arange(3.0)
    for f, message in {
        (
            lambda x: tk.pure_callback(abs, x, x)
        ): "pure_callback of abs: .* pass vmap_method=, one of 'sequential'",
        (lambda x: tk.io_callback(abs, x, x, ordered=True)): "io_callback of abs: .* ordered=True",
        (lambda x: tk.debug.print("{}", x, ordered=True)): "debug.print of '{}': .* ordered=True",
        (lambda x: tk.cond(x > 1, io, lambda x: x, x)): "cond: io_callback under vmap",
        (
            lambda x: tk.while_loop(lambda x: x < 1, lambda x: io(x) + 1, x)
        ): "while_loop: io_callback under vmap",
    }.items():
        for mapped in (tk.vmap(f), tk.jit(tk.vmap(f)), tk.vmap(tk.jit(f))):
            with pytest.raises(ArgumentError, match=message):
                mapped(xs)
    assert tk.vmap(lambda x, p: tk.cond(p, io, lambda x: x, x), (0, None))(xs, True).tolist() == [
        0.0,
        1.0,
        2.0,
    ]


def test_a_derivative_is_an_error_that_names_custom_rules() -> None:
    def f(x: Any) -> Any:
        return tk.pure_callback(np.sin, x, x, vmap_method="sequential")

    calls: list[int] = []

    def io(x: Any) -> Any:
        return tk.io_callback(lambda x: (calls.append(1), x)[1], x, x)

    for g in (f, io):
        for transform in (
            lambda g: tk.grad(g),
            lambda g: tk.grad(tk.jit(g)),
            lambda g: tk.jit(tk.grad(g)),
            lambda g: lambda x: tk.jvp(g, (x,), (x,)),
            lambda g: lambda x: tk.linearize(g, x),
            lambda g: lambda x: tk.vmap(tk.grad(g))(tk.stack([x, x])),
            lambda g: lambda x: tk.trace(g)(x).adjoints(),
            lambda g: tk.grad(lambda x: tk.fori_loop(0, 2, lambda _, c: g(c), x)),
        ):
            with pytest.raises(GradientError, match=r"callback of .*tk\.custom_jvp or tk\.custom_vjp"):
                transform(g)(tk.tensor(1.0))
    assert not calls, "the effect occurs before the error"
    assert tk.grad(lambda x: x * f(tk.stop_gradient(x)))(0.5).item() == pytest.approx(np.sin(0.5))
    integers = tk.ShapeDtypeStruct((), "int32")
    assert tk.grad(lambda x: x * tk.pure_callback(lambda x: 3, integers, x))(0.5).item() == 3.0


def test_a_custom_rule_gives_a_callback_its_derivative() -> None:
    @tk.custom_jvp
    def sin(x: Any) -> Any:
        return tk.pure_callback(np.sin, x, x, vmap_method="expand_dims")

    sin.defjvp(lambda primals, tangents: (sin(*primals), tk.cos(primals[0]) * tangents[0]))

    @tk.custom_vjp
    def same(x: Any) -> Any:
        return sin(x)

    same.defvjp(
        lambda x: (sin(x), x), lambda x, t: (t * tk.pure_callback(np.cos, x, x, vmap_method="sequential"),)
    )
    x, xs = tk.tensor(0.5), tk.tensor([0.25, 0.5])
    for f in (sin, same, tk.jit(sin), tk.jit(same)):
        for g in (
            tk.grad(f),
            tk.jit(tk.grad(f)),
            tk.grad(lambda x, f=f: tk.fori_loop(0, 1, lambda _, c: f(c), x)),
        ):
            assert g(x).item() == pytest.approx(np.cos(0.5))
            assert tk.vmap(g)(xs).tolist() == pytest.approx(np.cos([0.25, 0.5]))
    assert tk.hessian(sin)(x).item() == pytest.approx(-np.sin(0.5))


# ---- effects -----------------------------------------------------------------------------------------------


def test_rules_of_custom_vjp_have_their_effects_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    @tk.custom_vjp
    def double(x: Any) -> Any:
        return x * 2

    def forward(x: Any) -> Any:
        tk.debug.print("forward {}", x)
        return x * 2, x

    def backward(x: Any, t: Any) -> Any:
        tk.debug.print("cotangent {}", t)
        tk.debug.print("residual {}", x)
        return (2 * t,)

    double.defvjp(forward, backward)

    def loop(x: Any) -> Any:
        return tk.fori_loop(0, 2, lambda _, c: double(c), x)

    def branch(x: Any) -> Any:
        return tk.cond(x > 0, double, lambda x: x, double(x))

    lines = ["forward 1.0", "forward 2.0", "cotangent 1.0", "residual 2.0", "cotangent 2.0", "residual 1.0"]
    for f in (lambda x: double(double(x)), loop, branch, tk.jit(loop), tk.jit(branch)):
        for g in (tk.grad(f), tk.jit(tk.grad(f)), tk.grad(tk.jit(f)), tk.jit(tk.grad(tk.jit(f)))):
            assert g(1.0).item() == 4.0
            assert capsys.readouterr().out.splitlines() == lines


def test_a_checkpoint_shows_values_again_and_refuses_other_effects(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def shown(x: Any) -> Any:
        tk.debug.print("{}", x)
        return tk.sin(x)

    calls: list[int] = []

    def io(x: Any) -> Any:
        tk.io_callback(lambda: calls.append(1), None)
        return tk.sin(x)

    for g in (
        tk.grad(tk.checkpoint(shown)),
        tk.jit(tk.grad(tk.checkpoint(shown))),
        tk.grad(tk.checkpoint(tk.jit(shown))),
    ):
        g(1.0)
        assert capsys.readouterr().out == "1.0\n1.0\n"
    tk.grad(tk.jit(io))(1.0)  # its program is now cached
    calls.clear()
    for g in (
        tk.grad(tk.checkpoint(io)),
        tk.jit(tk.grad(tk.checkpoint(io))),
        tk.grad(tk.checkpoint(tk.jit(io))),
        tk.grad(tk.checkpoint(lambda x: tk.fori_loop(0, 2, lambda _, c: io(c), x))),
    ):
        with pytest.raises(GradientError, match=r"tk\.checkpoint would run it again"):
            g(1.0)
    assert not calls
    assert tk.checkpoint(io)(0.0).item() == 0.0 and len(calls) == 1


@pytest.mark.parametrize("name", ["eager", "jit", "jit(jit)", "trace"])
def test_effects_without_operands_occur_at_each_run(backend: str, name: str) -> None:
    calls: list[str] = []

    def f(x: Any) -> Any:
        tk.io_callback(lambda: calls.append("first"), None)
        tk.debug.callback(lambda: calls.append("second"))
        return x

    run = TRANSFORMED[name](f)
    for count in (1, 2, 3):
        run(tk.tensor(1.0))
        assert calls == ["first", "second"] * count

    def nothing() -> None:
        tk.debug.callback(lambda: calls.append("third"))

    calls.clear()
    jitted = tk.jit(nothing)
    assert jitted() is None and jitted() is None and calls == ["third", "third"]
    outer = tk.jit(lambda x: (jitted(), x)[1])
    for _ in range(3):
        outer(1.0)
    assert calls == ["third"] * 5


@pytest.mark.parametrize("callback", [tk.io_callback, tk.pure_callback])
def test_the_backward_pass_of_a_loop_keeps_results_of_callbacks(callback: Any) -> None:
    """Values that are the same at each step are computed again in the backward pass; those of callbacks are kept."""
    calls: list[float] = []

    def doubled(w: Any) -> Any:
        calls.append(w.item())
        return w * 2

    def loss(x: Any, w: Any) -> Any:
        return tk.fori_loop(0, 3, lambda _, c: c * tk.sin(callback(doubled, w, w)), x)

    for f in (loss, tk.jit(loss)):
        for g in (tk.grad(f), tk.jit(tk.grad(f))):
            assert g(1.0, tk.tensor(0.5)).item() == pytest.approx(np.sin(1.0) ** 3)
            assert len(calls) == 3
            calls.clear()


def test_a_checkpoint_without_arguments_has_effects_at_each_run() -> None:
    calls: list[str] = []
    shown = tk.checkpoint(lambda: (tk.debug.callback(lambda: calls.append("now")), tk.ones(()))[1])
    program = tk.trace(lambda x: x * shown())(2.0)
    assert calls == []
    assert program(2.0).item() == tk.jit(program)(2.0).item() == 2.0
    assert calls == ["now", "now"]


def test_an_effect_in_a_trace_on_another_backend_than_the_default() -> None:
    calls: list[str] = []
    f = tk.jit(lambda x: (tk.debug.callback(lambda: calls.append("now")), x)[1])
    x = tk.tensor(1.0, backend=Reference())
    f(x)
    f(x)
    assert calls == ["now", "now"]


@pytest.mark.parametrize("callback", [tk.pure_callback, tk.io_callback])
@pytest.mark.parametrize("name", ["eager", "jit", "trace", "scan"])
def test_an_exception_reaches_the_caller_and_the_next_call_works(
    backend: str, callback: Any, name: str
) -> None:
    fails = [True, False, True]

    def f(x: Any) -> Any:
        if fails.pop(0):
            raise KeyError("mine")
        return x + 1

    if name == "scan":
        run = tk.jit(lambda x: tk.fori_loop(0, 1, lambda _, c: callback(f, c, c), x))
    else:
        run = TRANSFORMED[name](lambda x: callback(f, x, x))
    for fails_now in (True, False, True):
        if fails_now:
            with pytest.raises(KeyError, match="mine") as caught:
                run(tk.tensor(1.0))
            (note,) = caught.value.__notes__
            assert note.startswith(f"tensorken: in {callback.__name__} of f, called at {__file__}")
        else:
            assert run(tk.tensor(1.0)).item() == 2.0


def test_a_callback_may_use_tensors_and_transforms() -> None:
    def f(x: Any) -> Any:
        return tk.jit(tk.grad(lambda y: y * y))(tk.tensor(x))

    def loss(x: Any) -> Any:
        tk.debug.callback(lambda x: seen.append(f(x).item()), x)
        return x * tk.pure_callback(f, x, tk.stop_gradient(x))

    seen: list[float] = []
    for g in (tk.grad(loss), tk.jit(tk.grad(loss)), tk.grad(tk.jit(loss))):
        assert g(3.0).item() == 6.0
    assert seen == [6.0] * 3


def test_threads_have_their_own_effects_in_order() -> None:
    logs: dict[int, list[float]] = {i: [] for i in range(4)}
    f = tk.jit(
        lambda i, x: tk.fori_loop(
            0,
            20,
            lambda k, c: (tk.io_callback(lambda i, c: logs[int(i)].append(float(c)), None, i, c), c + 1)[1],
            x,
        )
    )
    threads = [threading.Thread(target=lambda i=i: f(i, 0.0)) for i in logs]  # type: ignore[misc]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(logs.values()) == [[float(k) for k in range(20)]] * 4


# ---- programs ----------------------------------------------------------------------------------------------


def test_a_program_with_callbacks_prints_and_is_not_saved(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        tk.debug.print("x = {}", x)
        return tk.pure_callback(np.sin, x, x)

    program = tk.trace(f)(1.0)
    assert "    debug_callback(x, callback='x = {}')" in str(program)
    assert "= pure_callback(x, callback=sin)" in str(program)
    assert "debug_callback" in program.to_dot() and "debug_callback" in program.to_mermaid()
    assert "debug_callback" in program._repr_html_()
    line = r"the op 'debug_callback' calls a Python function \('x = \{\}'\), which cannot be saved"
    with pytest.raises(ProgramError, match=f"^save: f: {line}"):
        program.save(tmp_path / "program.json")
    inner = tk.trace(lambda x: tk.fori_loop(0, 2, lambda _, c: f(c), x))(1.0)
    with pytest.raises(ProgramError, match=f"^save: .*{line}"):
        inner.save(tmp_path / "program.json")
    with pytest.raises(ProgramError, match=f"^to_python: f: {line}"):
        program.to_python()
    with pytest.raises(TypeError, match="debug_callback"):
        pickle.dumps(program)


# ---- tk.debug ----------------------------------------------------------------------------------------------


def test_print_formats_values_and_other_objects(capsys: pytest.CaptureFixture[str], backend: str) -> None:
    @tk.jit
    def f(x: Any) -> Any:
        tk.debug.print(
            "{} {x[0]:.2f} {tree} {text!r} {x.shape}", 7, x=x, tree={"a": x[0], "b": None}, text="t"
        )
        return x

    f(tk.tensor([1.0, 2.5]))
    value = repr(np.array(1.0, "float32"))
    assert capsys.readouterr().out == f"7 1.00 {{'a': {value}, 'b': None}} 't' (2,)\n"


def test_print_of_a_batch_is_a_line_for_each_example(
    capsys: pytest.CaptureFixture[str], backend: str
) -> None:
    def f(x: Any) -> Any:
        tk.debug.print("a {}", x)
        tk.debug.print("once")
        tk.debug.print("b {}", x)
        return x * x

    lines = ["a 0.0", "a 1.0", "once", "b 0.0", "b 1.0"]
    for g in (
        tk.vmap(f),
        tk.jit(tk.vmap(f)),
        tk.vmap(tk.jit(f)),
        tk.vmap(tk.grad(f)),
        tk.jit(tk.vmap(tk.grad(f))),
    ):
        g(tk.arange(2.0))
        assert capsys.readouterr().out.splitlines() == lines


def test_a_batch_of_branches_and_conditions_shows_all_examples(capsys: pytest.CaptureFixture[str]) -> None:
    def branch(name: str) -> Any:
        return lambda x: (tk.debug.print(f"{name} {{}}", x), x)[1]

    tk.vmap(lambda x: tk.cond(x > 0, branch("true"), branch("false"), x))(tk.arange(2.0))
    assert capsys.readouterr().out.splitlines() == ["true 0.0", "true 1.0", "false 0.0", "false 1.0"]
    tk.vmap(lambda x: tk.while_loop(lambda x: x < 2, lambda x: branch("step")(x) + 1, x))(tk.arange(2.0))
    assert capsys.readouterr().out.splitlines() == ["step 0.0", "step 1.0", "step 1.0", "step 2.0"]


def test_a_backend_without_values_refuses_callbacks_with_operands() -> None:
    calls: list[int] = []
    backend = String()
    x = tk.Tensor(backend, backend.symbol("x", (2,)))
    for f in (lambda: tk.debug.print("{}", x), lambda: tk.pure_callback(abs, x, x)):
        with pytest.raises(ConcretizationError, match="the string backend has no values"):
            f()
    with tk.use_backend(backend):
        tk.io_callback(lambda: calls.append(1), None)
    assert calls == [1]


@pytest.mark.parametrize("transform", ["eager", "jit", "grad", "vmap"])
def test_breakpoint_shows_the_local_variables(monkeypatch: pytest.MonkeyPatch, transform: str) -> None:
    stops: list[dict[str, Any]] = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: stops.append(dict(sys._getframe(1).f_locals)))
    escaped: list[Any] = []
    tk.grad(lambda x: (escaped.append(x), x)[1])(1.0)

    def f(x: Any) -> Any:
        old, count, text, module = escaped[0], 3, "text", np
        tree = {"double": x * 2.0, "none": None}
        tk.debug.breakpoint()
        return tree["double"] * count + len(text) + (old is module)

    for _ in range(2):
        match transform:
            case "eager":
                f(tk.tensor(1.0))
            case "jit":
                jitted = tk.jit(f)
                jitted(1.0)
            case "grad":
                tk.grad(f)(1.0)
            case "vmap":
                tk.vmap(f)(tk.tensor([1.0, 5.0]))
        values = [1.0] if transform != "vmap" else [1.0, 5.0]
        assert [stop["x"].item() for stop in stops] == values
        assert [stop["tree"]["double"].item() for stop in stops] == [2 * x for x in values]
        assert all([type(stop["x"]) is np.ndarray and stop["x"].shape == () for stop in stops])
        assert all([stop["count"] == 3 and stop["text"] == "text" for stop in stops])
        assert all(["module" not in stop and "old" not in stop for stop in stops])
        stops.clear()


def test_breakpoint_opens_pdb() -> None:
    program = """
import tensorken as tk

@tk.jit
def f(x):
    y = x * 2.0
    tk.debug.breakpoint()
    return y

print("result", f(3.0).item())
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        input="p y.item() + 1\nc\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert "7.0" in done.stdout and "result 6.0" in done.stdout
