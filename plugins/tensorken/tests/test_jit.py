"""jit: the same function at every level, traced once for each cache key; static and donated arguments."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import importlib
import warnings
import weakref

import numpy
import pytest

import tensorken as tk
from core.tests.each import each_of
from core.tests.support import close
from core.tests.threads import together
from tensorken.compilation.fast_path import MAX_RECENT
from tensorken_core.errors import (
    ArgumentError,
    ConcretizationError,
    EscapedTensorError,
    MixedBackendError,
    RetraceWarning,
    ScalarRangeError,
    TensorkenError,
)
from tensorken_core.language import observe
from tensorken_reference.backend import Reference

BACKENDS = ("numpy", "reference")


def mlp(w, x):
    return (tk.tanh(x @ w["first"]) @ w["second"]).sum() * 0.5


def normal(x):
    return tk.softmax(x - x.mean(-1, keepdims=True), -1) * x.std()


def picky(x):
    return tk.where(x > 0, tk.sqrt(abs(x)), x * x).sum() + tk.sort(x.flatten())[1]


def checkpointed(x):
    return tk.checkpoint(lambda y: tk.sin(y) * tk.exp(y))(x).sum()


FUNCTIONS = {
    "mlp": (mlp, lambda m: ({"first": m(3, 4), "second": m(4, 2)}, m(5, 3))),
    "normal": (lambda x: normal(x).sum(), lambda m: (m(3, 4),)),
    "picky": (picky, lambda m: (m(2, 3),)),
    "checkpointed": (checkpointed, lambda m: (m(4),)),
    "cumulated": (
        lambda x: (tk.cumsum(x, 0) * tk.take(x, tk.tensor([1, 0, 1], backend=x.backend), 0)).sum(),
        lambda m: (m(3, 2),),
    ),
    "solved": (
        lambda a, b: tk.linalg.solve(a + 3 * tk.eye(3, backend=a.backend), b).sum(),
        lambda m: (m(3, 3), m(3)),
    ),
}


def given(name, backend, dtype="float64"):
    f, arguments = FUNCTIONS[name]
    key = iter(range(100))

    def make(*shape):
        x = tk.random.normal(tk.random.key(next(key), backend=backend), shape, dtype=dtype)
        return x

    return f, arguments(make)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_derivatives_are_those_of_the_function(name, backend):
    f, arguments = given(name, backend)
    fast = tk.jit(f)
    for _ in range(2):
        close(fast(*arguments), f(*arguments))
    close(tk.grad(fast)(*arguments), tk.grad(f)(*arguments))
    close(tk.jit(tk.grad(f))(*arguments), tk.grad(f)(*arguments))
    close(tk.jit(tk.grad(fast))(*arguments), tk.grad(f)(*arguments))
    close(tk.jvp(fast, arguments, arguments), tk.jvp(f, arguments, arguments))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nests_of_derivatives_and_batches(name):
    f, arguments = given(name, "numpy")
    fast, (x, *rest) = tk.jit(f), arguments

    def along(f):
        """The second derivative with respect to x, in both modes."""
        return lambda x: tk.jvp(lambda x: tk.grad(f)(x, *rest), (x,), (x,))[1]

    close(along(fast)(x), along(f)(x))
    close(tk.jit(along(fast))(x), along(f)(x))

    def twice(f):
        return tk.grad(lambda x: sum([(leaf**2).sum() for leaf in tk.tree.leaves(tk.grad(f)(x, *rest))]))

    close(twice(fast)(x), twice(f)(x))
    several = tk.tree.map(lambda leaf: tk.stack([leaf, 2 * leaf]), x)
    axes = (0, *[None] * len(rest))
    close(tk.vmap(fast, axes)(several, *rest), tk.vmap(f, axes)(several, *rest))
    close(tk.vmap(tk.grad(fast), axes)(several, *rest), tk.vmap(tk.grad(f), axes)(several, *rest))
    close(tk.jit(tk.vmap(tk.grad(fast), axes))(several, *rest), tk.vmap(tk.grad(f), axes)(several, *rest))


def test_a_function_is_traced_once_for_each_cache_key():
    traced = []

    @tk.jit
    def f(x, y):
        traced.append((x.shape, x.dtype.name))
        return x + y

    assert f(tk.ones(3), 1.0).tolist() == [2.0] * 3
    assert f(tk.zeros(3), 2.0).tolist() == [2.0] * 3
    assert f(tk.zeros(3), y=2.0).tolist() == [2.0] * 3
    assert f(tk.ones(2), 1.0).tolist() == [2.0] * 2
    assert f(tk.ones(2, dtype="float64"), 1.0).dtype is tk.float64
    assert traced == [((3,), "float32"), ((3,), "float32"), ((2,), "float32"), ((2,), "float64")]
    before = len(traced)
    for _ in range(3):
        tk.grad(lambda x: f(x, x).sum())(tk.ones(5))
        tk.vmap(lambda x: f(x, x))(tk.ones((4, 5)))
    assert len(traced) == before + 1


def test_python_code_runs_only_while_tracing():
    calls = []
    f = tk.jit(lambda: calls.append(1) or tk.ones(2) * 3)
    assert f().tolist() == f().tolist() == [3.0, 3.0]
    assert calls == [1]


def test_results_keep_their_structure_and_may_be_arguments_or_constants():
    k = tk.tensor([7.0])
    f = tk.jit(lambda x: {"same": x, "constant": k, "number": 2, "nothing": None, "pair": (x + 1, x + 1)})
    x = tk.ones(1)
    y = f(x)
    assert {name: tk.tree.map(tk.Tensor.tolist, value) for name, value in y.items()} == {
        "same": [1.0],
        "constant": [7.0],
        "number": 2,
        "nothing": None,
        "pair": ([2.0], [2.0]),
    }


def test_static_arguments_are_passed_unchanged():
    traced = []

    def f(x, times, how):
        traced.append((times, how))
        return sum([getattr(tk, how)(x)] * times)

    fast = tk.jit(f, static_argnums=(1, 2))
    x = tk.tensor(0.5)
    assert fast(x, 3, "sin").item() == f(x, 3, "sin").item()
    assert fast(x, 3, "sin").item() == f(x, 3, "sin").item()
    assert fast(x, 2, "cos").item() == f(x, 2, "cos").item()
    assert len(traced) == 2 + 3
    assert tk.grad(fast)(x, 3, "sin").item() == tk.grad(f)(x, 3, "sin").item()
    with pytest.raises(ArgumentError, match="a static argument cannot be hashed"):
        fast(x, [3], "sin")
    with pytest.raises(
        ArgumentError, match=r"jit: f: argument leaf 2 is a str, need a tensor.*static_argnums"
    ):
        tk.jit(f)(x, 3, "sin")
    with pytest.raises(
        ArgumentError, match="static_argnums 5 does not fit f, which has 3 positional parameters"
    ):
        tk.jit(f, static_argnums=5)
    with pytest.raises(ArgumentError, match="static_argnums 5 does not fit a call with 1"):
        tk.jit(lambda *xs: xs, static_argnums=5)(x)


@each_of(
    "which",
    [
        {"static_argnums": (1, 2)},
        {"static_argnums": [-1, -2]},
        {"static_argnames": ("times", "how")},
        {"static_argnames": ["how", "times"]},
        {"static_argnums": 1, "static_argnames": ("times", "how")},
    ],
)
def test_static_arguments_may_be_passed_by_position_or_by_name(which):
    traced = []

    def f(x, times=2, how="sin", *, scale=1.0):
        traced.append((times, how))
        return getattr(tk, how)(x) * times * scale

    fast, x = tk.jit(f, **which), tk.tensor(0.5)
    both = len(which) == 2  # then nothing is inferred: "how" is static only by name
    calls = [
        lambda g: g(x, 3, how="cos"),
        lambda g: g(x, times=3, how="sin"),
        lambda g: g(x),
        lambda g: g(x=x, times=4),
    ]
    calls += [] if both else [lambda g: g(x, 3, "cos"), lambda g: g(x, 3, "sin", scale=2.0)]
    calls += [
        lambda g: tk.grad(g)(x, times=3, how="cos"),
        lambda g: tk.vmap(lambda x: g(x, how="cos"))(tk.ones(2)),
    ]
    for call in calls:
        wanted = call(f).tolist()
        traced.clear()
        assert [call(fast).tolist() for _ in range(3)] == [wanted] * 3
        assert len(traced) <= 1
    assert fast(x, times=3, how="cos").item() != fast(x, times=3, how="sin").item() != fast(x, times=1).item()
    if both:
        with pytest.raises(ArgumentError, match="need a tensor"):
            fast(x, 3, "cos")


def test_static_names_of_a_function_with_any_keywords():
    fast = tk.jit(lambda x, *rest, **options: x * options["n"], static_argnames="n")
    assert [fast(2.0, n=n).item() for n in (2, 3, 3)] == [4.0, 6.0, 6.0]
    assert tk.jit(max, static_argnums=(0, -1))(2.0, 1.0).item() == 2.0  # written in C
    with pytest.raises(
        ArgumentError, match=r"jit: static_argnames 'm': named_f has no parameter 'm'; it has x, n$"
    ):
        tk.jit(named_f, static_argnames="m")
    with pytest.raises(
        ArgumentError,
        match=r"jit: static_argnums must be an int or a sequence of ints, got 'n'.*static_argnames",
    ):
        tk.jit(named_f, static_argnums="n")
    with pytest.raises(
        ArgumentError, match=r"jit: static_argnames must be a str or a sequence of str, got 1.*static_argnums"
    ):
        tk.jit(named_f, static_argnames=1)


def test_a_warning_names_a_static_keyword_that_varies():
    f = tk.jit(lambda x, n=0: x, static_argnames="n")
    for n in range(15):
        f(1.0, n=n)
    with pytest.warns(RetraceWarning, match=r"traced 16 times.*static argument n has another value, 15"):
        f(1.0, n=15)
    g = tk.jit(lambda x, n=0: x, static_argnames="n")
    for n in range(15):
        g(1.0, n=n)
    with pytest.warns(
        RetraceWarning, match="static argument n has another value, 14, or is passed in another way"
    ):
        g(1.0)


def named_f(x, n):
    return x * n


@pytest.mark.parametrize(
    "values", [(1, 1.0, True), (0.0, -0.0), ((1, 2), (1.0, 2), (True, 2)), (float("nan"), -float("nan"))]
)
def test_equal_static_arguments_of_different_types_are_distinct(values):
    seen = []

    def f(x, value):
        seen.append(value)
        return x

    jitted = tk.jit(f, static_argnums=1)
    for _ in range(2):
        for value in values:
            jitted(tk.ones(2), value)
    assert [repr(value) for value in seen] == [repr(value) for value in values]


def test_a_function_without_arguments_runs_on_the_backend_in_use():
    f = tk.jit(lambda: tk.ones(3) * 2.0)
    for _ in range(2):
        for name in ("numpy", "reference"):
            with tk.use_backend(name):
                assert f().backend == name


def test_integers_are_traced_as_integers():
    f = tk.jit(lambda x, i: (x[i], x * i))
    item, product = f(tk.tensor([1.0, 2.0, 3.0]), 2)
    assert (item.item(), product.tolist()) == (3.0, [2.0, 4.0, 6.0])
    assert f(tk.tensor([1.0, 2.0, 3.0]), 0)[0].item() == 1.0


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_nan_keeps_its_sign(backend):
    def f(x):
        return [tk.copysign(x, nan) for nan in (float("nan"), -float("nan"))]

    with tk.use_backend(backend):
        x = tk.tensor([1.0, 2.0])
        scope = {}
        exec(tk.trace(f)(x).to_python(), scope)
        for g in (f, tk.jit(f), scope["f"]):
            assert [y.tolist() for y in g(x)] == [[1.0, 2.0], [-1.0, -2.0]]


def test_tensors_without_values_say_why():
    shown = []

    def f(x):
        shown.extend([repr(x), str(x), f"{tk.sin(x):.2f}"])
        tk.grad(lambda y: shown.append(repr(y)) or y.sum())(x)
        return x + 1.0

    x = tk.ones((2,))
    tk.jit(f, donate_argnums=0)(x)
    text = "tensor {}, shape=(2,), dtype=float32"
    traced = f"<<{text.format('without values')}> inside "
    assert shown == [f"{traced}trace>"] * 3 + [f"{traced}grad>"]
    assert repr(x) == str(x) == f"<{text.format('donated to a call of f')}>"
    assert f"{[x]}" == f"[{x!r}]"


def test_donated_tensors_are_invalid_after_the_call():
    f = tk.jit(lambda state, x: {"w": state["w"] + x}, donate_argnums=0)
    state, x = {"w": tk.zeros(3)}, tk.ones(3)
    old = state["w"]
    for _ in range(3):
        state = f(state, x)
    assert state["w"].tolist() == [3.0] * 3
    assert (old.shape, old.dtype) == ((3,), tk.float32)
    with pytest.raises(EscapedTensorError, match=r"add: this tensor was donated to a call of <lambda>"):
        old + 1.0
    with pytest.raises(EscapedTensorError, match="donated"):
        old.tolist()
    with pytest.raises(EscapedTensorError, match="donated"):
        f({"w": old}, x)
    assert x.tolist() == [1.0] * 3
    assert tk.grad(lambda w: f({"w": w}, x)["w"].sum())(state["w"]).tolist() == [1.0] * 3
    assert state["w"].tolist() == [3.0] * 3, "under a transform nothing is given away"


def test_the_fast_path_takes_only_calls_like_the_last_one():
    """Each kind of call three times in a row, and after each other kind: the third one takes the fast path."""

    def f(scale, tree, *, more=None):
        total = sum([tk.sum(x) for x in tk.tree.leaves(tree)], tk.tensor(0.0))
        return {"sum": total * scale, "more": more}

    x, y = tk.tensor([1.0, 2.0]), tk.tensor([3.0, 4.0])
    calls = [
        ((2, {"a": x, "b": y}), {}),
        ((3, {"a": x, "b": y}), {}),
        ((2.0, {"a": x, "b": y}), {}),
        ((2, {"a": x, "c": y}), {}),
        ((2, {"a": x, "b": [y]}), {}),
        ((2, {"a": x, "b": None}), {}),
        ((2, {"a": x, "b": tk.ones(3)}), {}),
        ((2, {"a": x, "b": tk.tensor([1, 2])}), {}),
        ((2, {"a": x, "b": 5.0}), {}),
        ((2, {"a": x, "b": y}), {"more": x}),
        ((2, {"a": x, "b": y}), {"more": None}),
        ((2, {"a": x, "b": y}), {"more": tk.tensor([1, 2])}),
        ((2,), {"tree": {"a": x, "b": y}}),
        ((2, (x, y)), {}),
        ((2, x), {}),
    ]
    jitted = tk.jit(f, static_argnums=0)

    def shown(g, arguments, keywords):
        found = g(*arguments, **keywords)
        return [found["sum"].item(), str(found["sum"].dtype), repr(found["more"])]

    for first in calls:
        for second in (first, *calls):
            for call in (first, first, first, second):
                assert shown(jitted, *call) == shown(f, *call), call


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_fast_path_donates_its_arguments(backend):
    with tk.use_backend(backend):
        step = tk.jit(lambda state, x: ({"w": state["w"] + x}, state["w"] * x), donate_argnums=0)
        state, x = {"w": tk.zeros(2)}, tk.ones(2)
        for count in range(4):
            old = state["w"]
            state, product = step(state, x)
            assert (state["w"].tolist(), product.tolist()) == ([count + 1.0] * 2, [count] * 2)
            assert old.shape == (2,)
            with pytest.raises(EscapedTensorError, match="donated"):
                old.tolist()
            with pytest.raises(EscapedTensorError, match="donated"):
                step({"w": old}, x)
    other = next(name for name in BACKENDS if name != backend)
    moved = step({"w": tk.ones(2, backend=other)}, tk.ones(2, backend=other))[1]
    assert (moved.backend, moved.tolist()) == (other, [1.0, 1.0])


@pytest.fixture
def no_general_path(monkeypatch):
    """A function after which a call that does not take the fast path fails."""

    def fail(*_):
        raise AssertionError("the call took the general path")

    return lambda: monkeypatch.setattr(importlib.import_module("tensorken.compilation.jit"), "_call", fail)


@dataclasses.dataclass
class Layer:
    weight: object
    bias: object
    name: str = dataclasses.field(default="layer", metadata={"static": True})


def test_the_third_call_of_each_kind_takes_the_fast_path(no_general_path):
    def f(layer, x, scale=1.0, *, power=1, shift=None):
        y = (x * layer.weight + layer.bias) * scale**power
        return Layer(y if shift is None else y + shift["by"], None, layer.name), (scale, (x,))

    jitted, x = tk.jit(f, static_argnames="power"), tk.tensor([1.0, 2.0])
    layer = Layer(tk.tensor([3.0, 4.0]), tk.tensor(0.5))
    calls = [
        ((layer, x), {}),
        ((layer, x, 3), {"power": 2}),
        ((layer, x, 3.0), {"power": 3}),
        ((layer, x, True), {}),
        ((layer,), {"x": x, "shift": {"by": x}}),
        ((Layer(x, 1, "other"), x), {"shift": {"by": 2.5}}),
        ((Layer(x, 1), tk.ones((3, 2))), {}),
        ((layer, numpy.ones((3, 2), numpy.float32)), {"power": 2}),
        ((Layer(numpy.float32(2), 1), x), {}),
        ((Layer(2, 1.5), 3.0), {}),
    ]
    assert len(calls) <= MAX_RECENT
    for arguments, keywords in calls * 2:
        jitted(*arguments, **keywords)
    no_general_path()
    for arguments, keywords in calls * 2:
        found, expected = jitted(*arguments, **keywords), f(*arguments, **keywords)
        assert tk.tree.structure(found) == tk.tree.structure(expected)
        assert found[0].name == expected[0].name
        close(found, expected)


def test_numbers_that_vary_are_not_part_of_the_fast_path(no_general_path):
    traced = []
    f = tk.jit(lambda x, rate, count, flag: traced.append(1) or (x * rate + count, flag, rate, count))
    x = tk.tensor([1.0, 2.0])
    for _ in range(2):
        f(x, 0.5, 1, True)
    with pytest.raises(ScalarRangeError, match="fit int32"):
        f(x, 0.5, 2**64, True)
    assert f(x, 0.5, 2**31, True)[3].item() == 2**31
    for nothing in ("0.5", None, x):
        with contextlib.suppress(TensorkenError):
            f(x, nothing, 1, True)
    traced.clear()
    no_general_path()
    for rate, count, flag in [(2.0, 3, False), (-0.0, -5, True), (float("inf"), 2**31 - 1, True)]:
        y, *others = f(x, rate, count, flag)
        assert y.tolist() == (x * rate + count).tolist()
        assert [repr(other.item()) for other in others] == [repr(flag), repr(rate), repr(count)]
        assert [other.dtype for other in others] == [tk.bool, tk.float32, tk.int32]
    assert not traced


def test_calls_without_tensors_run_on_the_backend_in_use(no_general_path):
    f = tk.jit(lambda x, n: x * n)
    g = tk.jit(lambda: tk.ones(2))
    calls = [lambda: f(3.0, 2), lambda: f(numpy.ones(2, numpy.float32), 2), g]
    for _ in range(2):
        for name in BACKENDS:
            with tk.use_backend(name):
                for call in calls:
                    call()
    no_general_path()
    for name in BACKENDS:
        with tk.use_backend(name):
            found = [call() for call in calls]
            assert [y.backend for y in found] == [name] * 3
            assert [y.tolist() for y in found] == [6.0, [2.0, 2.0], [1.0, 1.0]]


def test_arrays_of_numpy_are_converted_in_each_call():
    f, x = tk.jit(lambda x, y: x + y, donate_argnums=1), tk.tensor([1.0, 2.0])
    for n in range(4):
        y = numpy.full(2, n, numpy.float32)
        found = f(x, y)
        assert y.tolist() == [n, n]
        y[:] = 100
        assert found.tolist() == [1.0 + n, 2.0 + n]
    assert f(x, numpy.ones((2, 1), numpy.float32)).shape == (2, 2)
    assert f(x, numpy.ones(2, numpy.float64)).dtype == tk.float64
    for _ in range(2):
        with pytest.raises(ArgumentError, match="jit: <lambda>: argument leaf 1 is a ndarray"):
            f(x, numpy.ones(2, object))
    assert f(x, numpy.full(2, 1j)).dtype == tk.complex128


def test_more_kinds_of_calls_than_are_tried():
    f = tk.jit(lambda x: x + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetraceWarning)
        for _ in range(3):
            for n in range(MAX_RECENT + 2):
                assert f(tk.ones(n)).tolist() == [2.0] * n


@each_of("error", [AttributeError, KeyError, ValueError])
def test_errors_of_the_program_are_not_taken_for_a_call_of_another_kind(error):
    class Failing(Reference):
        runs, fails = 0, False

        def sin(self, x):
            self.runs += 1
            if self.fails:
                raise error("of the program")
            return super().sin(x)

    backend = Failing()
    f, x = tk.jit(lambda x: tk.sin(x)), tk.ones(2, backend=backend)
    for _ in range(3):
        f(x)
    backend.fails, backend.runs = True, 0
    with pytest.raises(error, match="of the program"):
        f(x)
    assert backend.runs == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_tensor_that_is_donated_and_used_twice(backend):
    f = tk.jit(lambda state, x, n: (state + x * n, x - n), donate_argnums=0)
    for n in range(5):
        state = tk.tensor([1.0, 2.0], backend=backend)
        y, z = f(state, state, n)
        assert (y.tolist(), z.tolist()) == ([1.0 + n, 2.0 + 2 * n], [1.0 - n, 2.0 - n])
        with pytest.raises(EscapedTensorError, match="donated"):
            state.tolist()


def test_the_fast_path_under_transforms_and_disable_jit():
    f, x = tk.jit(lambda x, n: (x * x * n).sum()), tk.tensor([1.0, 2.0])
    for _ in range(3):
        assert f(x, 3.0).item() == 15.0
        assert tk.grad(lambda x: f(x, 3.0))(x).tolist() == [6.0, 12.0]
        assert tk.grad(lambda n: f(x, n))(3.0).item() == 5.0
        assert tk.vmap(lambda x: f(x, 3.0))(tk.stack([x, x])).tolist() == [15.0, 15.0]
        assert tk.grad(tk.grad(lambda n: f(x * n, n)))(3.0).item() == 90.0
        with tk.disable_jit():
            assert f(x, 3.0).item() == 15.0


def test_calls_keep_no_tensor_alive():
    f = tk.jit(lambda tree, n: {"y": tree["x"] * n})
    gc.collect()
    gc.disable()
    try:
        for _ in range(4):
            x = tk.ones(2)
            y = f({"x": x}, 2.0)["y"]
            kept = weakref.ref(x), weakref.ref(y)
            del x, y
            assert [one() for one in kept] == [None, None]
    finally:
        gc.enable()


def test_a_jitted_function_is_freed_with_its_last_reference():
    constant = tk.tensor([1.0, 2.0, 3.0])
    f, kept = tk.jit(lambda x, constant=constant: x * constant), weakref.ref(constant)
    for _ in range(4):
        f(2.0)
    gc.collect()
    gc.disable()
    try:
        del f, constant
        assert kept() is None
    finally:
        gc.enable()


def test_observers_see_calls_on_the_fast_path():
    step = tk.jit(lambda tree: {"y": tree["x"] * 2.0})
    for _ in range(3):
        step({"x": tk.ones(2)})
    seen = []

    def note(proceed, interpreter, op, operands, params):
        seen.append(op.name)
        return proceed(interpreter, op, operands, params)

    observe.observe(note)
    try:
        step({"x": tk.ones(2)})
    finally:
        observe.unobserve(note)
    assert "program" in seen


def test_captured_tensors_of_enclosing_transforms_are_extra_inputs():
    def f(a, x):
        return tk.jit(lambda x: (x * a).sum())(x)

    x = tk.tensor([1.0, 2.0])
    for _ in range(2):
        assert tk.grad(f)(3.0, x).item() == 3.0
    assert tk.grad(tk.grad(lambda a: f(a * a, x)))(3.0).item() == 6.0
    kept = tk.jit(lambda x: x * box[0])
    box = [tk.tensor(2.0)]

    def through(a):
        box[0] = a
        return kept(tk.tensor(1.0))

    assert [tk.grad(through)(v).item() for v in (1.0, 5.0)] == [1.0, 1.0]


def test_each_backend_has_its_own_program():
    f = tk.jit(lambda x: x + 1)
    assert [f(tk.ones(1, backend=name)).backend for name in BACKENDS] == list(BACKENDS)
    with pytest.raises(MixedBackendError, match="move one with"):
        tk.jit(lambda x, y: x + y)(*[tk.ones(1, backend=name) for name in BACKENDS])
    assert str(f(tk.symbol("x"))) == str(tk.symbol("x") + 1)


def test_control_flow_on_values_is_one_clear_error_and_the_next_call_works():
    f = tk.jit(lambda x: x if x.sum() > 0 else -x)
    with pytest.raises(
        ConcretizationError,
        match=r"^jit: this bool of shape \(\) has no value while .* is traced.*tk.where or tk.cond",
    ):
        f(tk.ones(2))
    g = tk.jit(lambda x, up: x + 1 if up else x - 1, static_argnums=1)
    assert [g(tk.ones(1), up).item() for up in (True, False)] == [2.0, 0.0]
    with pytest.raises(ArgumentError, match="need a function"):
        tk.jit(tk.ones(2))


def test_a_warning_about_many_traces_names_the_cause():
    f = tk.jit(lambda x: x * 2)
    for n in range(15):
        f(tk.ones(n))
    with pytest.warns(RetraceWarning, match=r"traced 16 times.*leaf 0 is float32\[15\] after float32\[14\]"):
        f(tk.ones(15))

    def step(x):
        return tk.jit(_doubled)(x)

    for _ in range(127):
        step(tk.ones(2))
    with pytest.warns(RetraceWarning, match="call jit once, outside of the loop"):
        step(tk.ones(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        g = tk.jit(lambda x: x * 3)
        for _ in range(100):
            g(tk.ones(2))


def _doubled(x):
    return 2 * x


def test_threads_share_a_function():
    f = tk.jit(lambda x: (tk.tanh(x) @ x.T).sum())
    xs = [tk.random.normal(tk.random.key(i), (20 + i % 3, 30)) for i in range(12)]
    expected = [f(x).item() for x in xs]
    wrong = []

    def work(_):
        for _ in range(20):
            for x, y in zip(xs, expected, strict=True):
                if f(x).item() != y:
                    wrong.append(x.shape)

    together(4, work)
    assert not wrong


def test_a_method_and_a_decorated_function_keep_their_names():
    class Model:
        scale = 2.0

        @staticmethod
        @tk.jit
        def loss(x):
            """The loss."""
            return x * Model.scale

    assert (Model.loss.__name__, Model.loss.__doc__) == ("loss", "The loss.")
    assert Model.loss(3.0).item() == 6.0


def test_the_program_has_the_functions_parameter_names():
    @tk.jit
    def loss(params, x, *rest, scale):
        return (x @ params["w"] + rest[0]).sum() * scale

    @functools.partial(tk.jit, static_argnums=0)
    def power(n, x):
        return x**n

    w, x = tk.ones(3), tk.ones((2, 3))
    text = str(tk.trace(lambda w: loss({"w": w}, x, 1.0, scale=2.0))(w))
    assert '\nloss(params["w"]: float32[3], x: float32[2, 3], rest_0: float64[], scale: float64[]):\n' in text
    assert "\npower(x: float32[3]):\n" in str(tk.trace(lambda w: power(3, w))(w))


def test_captured_values_do_not_get_parameter_names():
    def outer(x):
        return tk.jit(lambda y: x * y)(2.0)

    program = tk.trace(outer)(3.0)
    assert program(3.0).item() == 6.0
    assert "(a: float64[], b: float64[]):\n" in str(program)


def test_the_gradient_of_a_jitted_function_is_compiled_with_it():
    """`grad(jit(f))` is `jit(grad(f))`, made once; a decorated jitted function is not mistaken for it."""
    calls = []

    def f(x, n):
        calls.append(n)
        return (x**n).sum()

    compiled = tk.jit(f, static_argnums=1)
    x = tk.tensor([1.0, 2.0, 3.0])
    for _ in range(3):
        assert tk.grad(compiled)(x, 2).tolist() == [2.0, 4.0, 6.0]
        value, slope = tk.value_and_grad(compiled)(x, 3)
        assert (value.item(), slope.tolist()) == (36.0, [3.0, 12.0, 27.0])
    assert calls == [2, 3]  # once each, by the gradients
    assert tk.grad(compiled, [0]) is tk.grad(compiled, [0])
    assert tk.grad(tk.grad(lambda y: compiled(y * x, 2)))(2.0).item() == 28.0
    assert tk.vmap(lambda x: tk.grad(compiled)(x, 2))(tk.stack([x, x])).tolist() == [[2.0, 4.0, 6.0]] * 2

    @functools.wraps(compiled)
    def doubled(x):
        return 2.0 * compiled(x, 2)

    assert tk.grad(doubled)(x).tolist() == [4.0, 8.0, 12.0]
