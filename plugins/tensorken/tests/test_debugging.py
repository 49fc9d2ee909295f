"""debug_nans names the op that made the first NaN, and the line of user code; errors about operands name it too."""

from __future__ import annotations

import inspect
import math
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

import tensorken as tk
from core.tests.each import each_of
from core.tests.support import STACKS, Counting
from tensorken import debugging
from tensorken_core.errors import DTypeError, IndexingError, NonFiniteError, ShapeError
from tensorken_core.language import observe
from tensorken_core.language.op import OPS, Op
from tensorken_core.rewriting.fuse import Fuse
from tensorken_reference.backend import Reference

pytestmark = pytest.mark.usefixtures("on_numpy")

inf, nan = math.inf, math.nan
ZEROS = [0.0, 0.0, 0.0]


def root(x: Any) -> Any:
    return tk.sqrt(x)  # the root


def norm(x: Any) -> Any:
    squares = x * x  # the squares
    return root(squares.sum())


def line(comment: str) -> str:
    """`FILE:LINE: SOURCE` of the line of this file that ends with a comment."""
    (found,) = [
        (number, text.strip())
        for number, text in enumerate(inspect.getsource(sys.modules[__name__]).splitlines(), 1)
        if text.endswith(f"  # {comment}")
    ]
    return f"{__file__}:{found[0]}: {found[1]}"


def message_of(call: Callable[[], Any], **options: Any) -> str:
    with tk.debug_nans(**options), pytest.raises(NonFiniteError) as caught:
        call()
    return str(caught.value)


# ---- values ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", [*STACKS.values(), Reference(), Fuse(Reference())], ids=repr)
def test_a_nan_is_an_error_at_its_op(backend: Any) -> None:
    x = tk.tensor([1.0, -1.0], backend=backend)
    assert message_of(lambda: root(x)) == f"sqrt: gives NaN for float32 (2,); at {line('the root')}"
    with tk.debug_nans():
        assert root(x[:1]).tolist() == [1.0]


def test_a_product_too_is_found_at_its_own_op() -> None:
    """Also where the backend defers it."""
    a, b = tk.tensor([inf, 1.0]), tk.tensor([0.0, 1.0])

    def f() -> Any:
        product = a * b  # the product
        return product.sum()

    assert (
        message_of(f)
        == f"mul: gives NaN for float32 (2,), float32 (2,) with infinities; at {line('the product')}"
    )


def test_operands_are_shown_with_their_dtypes_and_as_broadcast() -> None:
    message = message_of(lambda: tk.zeros((2, 1), "float64") / tk.zeros((3,), "float64"))
    assert message.startswith("div: gives NaN for float64 (2, 3), float64 (2, 3); at ")


@pytest.mark.parametrize(
    "call",
    [
        lambda: tk.tensor([nan, 1.0]) + 1.0,
        lambda: tk.sqrt(tk.tensor([nan])),
        lambda: tk.log(tk.tensor([0.0])),
        lambda: tk.tensor([], "float32").sum(),
        lambda: tk.tensor([1, 2]) // 0,
        lambda: tk.where(tk.tensor([True, False]), 1.0, nan),
        lambda: tk.symbol("x") / 0.0,
    ],
    ids=[
        "nan in",
        "nan in a function",
        "infinity",
        "nothing",
        "integers",
        "a nan of the user's",
        "no values",
    ],
)
def test_ops_without_new_nans_pass(call: Callable[[], Any]) -> None:
    with tk.debug_nans():
        call()


EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 1000.0, -1000.0]


@each_of("backend", ["Required()", "Fuse(Required())", "Fuse(Numpy())"])
@pytest.mark.parametrize("op", [op for op in OPS.values() if op.elementwise and op.arity == 1], ids=repr)
def test_a_body_may_make_nans_that_it_does_not_select(op: Op, backend: str) -> None:
    """An error is raised if and only if the result has a NaN."""
    dtype = "int32" if op.name in ("from_bits",) else "float32"
    for value in EDGES:
        x = tk.tensor([value if dtype == "float32" else int(value)], dtype, backend=STACKS[backend])
        is_nan = math.isnan(x.apply(op).tolist()[0])
        with tk.debug_nans():
            try:
                x.apply(op)
            except NonFiniteError:
                assert is_nan
            else:
                assert not is_nan


def test_infinities_are_errors_on_request() -> None:
    assert message_of(lambda: tk.exp(1000.0), infinities=True).startswith(
        "exp: gives infinity for float32 ()"
    )
    assert message_of(lambda: tk.log(0.0), infinities=True).startswith("log: gives infinity for float32 ()")
    with tk.debug_nans(infinities=True):
        assert (tk.tensor([inf, -inf]) * 2.0).tolist() == [inf, -inf]


# ---- derivatives -------------------------------------------------------------------------------------------


def test_the_backward_pass_names_the_line_of_the_forward_value() -> None:
    message = message_of(lambda: tk.grad(norm)(tk.tensor(ZEROS)))
    assert message == (
        "mul: gives NaN for float32 (3,), float32 (3,) with infinities, in the derivative of mul; "
        f"the value was made at {line('the squares')}"
    )


def test_forward_mode_names_the_line_that_runs() -> None:
    message = message_of(lambda: tk.jvp(norm, (tk.tensor(ZEROS),), (tk.tensor(ZEROS),)))
    assert message == (
        f"div: gives NaN for float32 (), float32 (), in the derivative of sqrt; at {line('the root')}"
    )


def test_a_rule_is_distinguished_from_its_op() -> None:
    x, tangent = tk.tensor(1.0), tk.tensor(inf)
    message = message_of(lambda: tk.jvp(lambda x: x * 0.0, (x,), (tangent,)))
    assert message.startswith(
        "mul: gives NaN for float32 (), float32 () with infinities, in the derivative of mul"
    )


@pytest.mark.parametrize(
    "f",
    [
        lambda x: tk.grad(lambda x: tk.grad(norm)(x).sum())(x),
        lambda x: tk.jvp(tk.grad(norm), (x,), (x,)),
        lambda x: tk.grad(lambda x: tk.jvp(norm, (x,), (x,))[1])(x),
        lambda x: tk.hessian(norm)(x),
        lambda x: tk.vmap(tk.grad(norm))(tk.stack([x, x])),
        lambda x: tk.grad(lambda x: tk.vmap(norm)(x).sum())(tk.stack([x, x])),
    ],
    ids=["grad of grad", "jvp of grad", "grad of jvp", "hessian", "vmap of grad", "grad of vmap"],
)
def test_every_nesting_names_a_line_of_the_function(f: Callable[[Any], Any]) -> None:
    message = message_of(lambda: f(tk.tensor(ZEROS)))
    assert "in the derivative of" in message
    assert message.endswith((f"at {line('the root')}", f"at {line('the squares')}"))


def test_under_vmap_shapes_are_those_of_one_example() -> None:
    message = message_of(lambda: tk.vmap(root)(-tk.ones((4, 3))))
    assert message == f"sqrt: gives NaN for float32 (3,); at {line('the root')}"


def test_the_error_says_if_the_pullback_was_made_before() -> None:
    _, pull_back = tk.vjp(norm, tk.tensor(ZEROS))
    message = message_of(lambda: pull_back(1.0))
    assert (
        "in the derivative of mul; the value was made before debug_nans was on, the pullback called at "
        in message
    )


def test_derivatives_are_the_same_with_and_without_the_check() -> None:
    x = tk.tensor([0.3, 0.5], "float64")

    def f(x: Any) -> Any:
        return (tk.sort(tk.tanh(x)) * tk.softmax(x)).sum()

    expected = tk.hessian(f)(x).ravel().tolist()
    with tk.debug_nans():
        assert tk.hessian(f)(x).ravel().tolist() == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("name", ["mul", "div", "sqrt", "relu", "softmax"])
def test_the_check_does_not_change_the_tape(name: str) -> None:
    """The first use of an op under a tape probes its rules."""
    op = OPS[name]
    active = (True,) * (op.arity or 1)
    params = ((0,),) if op.params else ()
    operands = [tk.tensor([1.0, 2.0])] * (op.arity or 1)

    def f(*xs: Any) -> Any:
        return xs[0].apply(op, *xs[1:], *params).sum()

    tk.vjp(f, *operands)
    expected = op.tape_needs.pop(active)
    with tk.debug_nans():
        tk.vjp(f, *operands)
    assert op.tape_needs[active] == expected


# ---- cost, and where it holds ------------------------------------------------------------------------------


def test_the_disabled_check_costs_nothing() -> None:
    """No observer is left afterwards, however the block ends."""
    with tk.debug_nans(), tk.debug_nans(False):
        assert len(observe.OBSERVERS) == 1
    assert observe.OBSERVERS == []
    with pytest.raises(RuntimeError), tk.debug_nans():
        raise RuntimeError
    assert observe.OBSERVERS == []
    assert math.isnan(root(-1.0).item())


def test_other_observers_keep_observing() -> None:
    seen: list[str] = []

    def note(proceed: Callable[..., Any], interpreter: Any, op: Op, operands: Any, params: Any) -> Any:
        seen.append(op.name)
        return proceed(interpreter, op, operands, params)

    observe.observe(note)
    try:
        assert "sqrt" in message_of(lambda: root(tk.tensor([-1.0])))
        assert "sqrt" in seen
        seen.clear()
        with tk.debug_nans():
            observe.unobserve(note)
            tk.exp(tk.tensor([1.0]))
        assert seen == []
        observe.observe(note)
        tk.exp(tk.tensor([1.0]))
        assert seen == ["exp"]
    finally:
        observe.unobserve(note)
    assert observe.OBSERVERS == []


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: f,
        tk.vmap,
        lambda f: lambda x: tk.jvp(f, (x,), (x,)),
        lambda f: tk.grad(lambda x: f(x).sum()),
    ],
    ids=["plain", "vmap", "jvp", "grad"],
)
def test_a_program_that_was_made_before_is_checked(transform: Callable[[Any], Any]) -> None:
    """Each op is checked if the backend runs op by op, only the results if it compiles."""

    def logs(x: Any) -> Any:
        return tk.log(x - 1.0) * 2.0

    for backend, name in ((Fuse(Reference()), "log: "), ("numpy", "logs: ")):
        x = tk.tensor([2.0, 3.0], backend=backend)
        f = tk.jit(logs)
        f(x)
        message = message_of(lambda f=f, x=x: transform(f)(x - 1.5))  # type: ignore[misc]
        assert (
            message.removeprefix("jvp of ")
            .removeprefix("vmap of ")
            .startswith(f"{name}gives NaN for float32")
        )
        assert message.endswith("; use tk.disable_jit() to find the op within it") == (backend == "numpy")


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_a_call_with_donated_operands_is_checked(backend: str) -> None:
    f = tk.jit(lambda x: tk.log(x - 0.5), donate_argnums=0)
    with tk.debug_nans():
        assert f(tk.full((200, 200), 1.5, backend=backend))[0, 0].item() == 0.0
        with pytest.raises(NonFiniteError, match=r"gives NaN for float32 \(200, 200\)"):
            f(tk.zeros((200, 200), backend=backend))


def test_it_can_be_off_within_and_decorate_a_function() -> None:
    with tk.debug_nans():
        with tk.debug_nans(False):
            assert math.isnan(root(-1.0).item())
        with pytest.raises(NonFiniteError):
            root(-1.0)

    @tk.debug_nans()
    def f() -> Any:
        return root(-1.0)

    for _ in range(2):
        with pytest.raises(NonFiniteError):
            f()
    assert math.isnan(root(-1.0).item())


def test_the_check_is_limited_to_its_context() -> None:
    seen: list[float] = []
    with tk.debug_nans():
        thread = threading.Thread(target=lambda: seen.append(root(tk.tensor(-1.0)).item()))
        thread.start()
        thread.join()
    assert math.isnan(seen[0])


def test_a_deferred_product_is_not_computed_only_for_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debugging, "MAX_CHECKED_SIZE", 100)
    backend = Counting()
    fused = Fuse(backend)
    a, b = (tk.ones((8, 8), backend=fused) for _ in range(2))
    with tk.debug_nans():
        assert (a @ b).tolist() == [[8.0] * 8] * 8
    assert max(math.prod(shape) for _, shape in backend.sizes) == 64
    infinite = tk.full((8, 8), inf, backend=fused)
    assert message_of(lambda: infinite @ (b * 0.0)).startswith("mul: gives NaN")


@pytest.mark.parametrize(("value", "is_on"), [("1", True), ("0", False), ("", False), ("off", False)])
def test_the_environment_turns_it_on(value: str, is_on: bool) -> None:
    code = "import tensorken as tk\ntk.log(tk.tensor(-1.0))\nwith tk.debug_nans(False): tk.log(-1.0)"
    environment = {**os.environ, "TENSORKEN_DEBUG_NANS": value}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert (done.returncode != 0) == is_on
    assert ("NonFiniteError: log: gives NaN for float32 (); at <string>:2" in done.stderr) == is_on


# ---- errors about operands ---------------------------------------------------------------------------------


def product(a: Any, b: Any) -> Any:
    return (a @ b).sum()  # the product of matrices


def wrong(x: Any) -> Any:
    return product(x, tk.ones((5, 7)))


@pytest.mark.parametrize(
    "call",
    [
        wrong,
        tk.grad(wrong),
        tk.vmap(wrong),
        tk.grad(lambda x: tk.vmap(wrong)(x).sum()),
        tk.hessian(wrong),
        lambda x: tk.jvp(wrong, (x,), (x,)),
        lambda x: tk.grad(lambda x: tk.grad(wrong)(x).sum())(x),
    ],
    ids=["eager", "grad", "vmap", "grad of vmap", "hessian", "jvp", "grad of grad"],
)
def test_a_shape_error_has_a_note_with_the_users_line(call: Callable[[Any], Any]) -> None:
    with pytest.raises(ShapeError) as caught:
        call(tk.ones((2, 2, 3)))
    assert caught.value.__notes__ == [f"at {line('the product of matrices')}"]
    assert "\n" not in str(caught.value)


def test_a_shape_error_in_a_pullback_has_a_note_too() -> None:
    _, pull_back = tk.vjp(lambda x: x * 2.0, tk.ones((2,)))
    with pytest.raises(ShapeError) as caught:
        pull_back(tk.ones((7,)))  # the pullback
    assert caught.value.__notes__ == [f"at {line('the pullback')}"]


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (DTypeError, lambda: -tk.ones((2,), "bool")),
        (DTypeError, lambda: tk.ones((2,), "float32") & tk.ones((2,), "float32")),
        (ShapeError, lambda: tk.ones((2,)).reshape((3,))),
        (ShapeError, lambda: tk.ones((2,)) + tk.ones((3,))),
        (IndexingError, lambda: tk.ones((2,))[5]),
    ],
)
def test_other_errors_about_operands_have_a_note_too(error: type[Exception], call: Callable[[], Any]) -> None:
    with pytest.raises(error) as caught:
        call()
    (note,) = caught.value.__notes__
    assert note.startswith(f"at {__file__}:")
    assert note.endswith("lambda: " + note.partition("lambda: ")[2])
    assert pickle.loads(pickle.dumps(caught.value)).__notes__ == [note]


def test_a_line_without_a_source_is_named_by_its_number() -> None:
    with pytest.raises(ShapeError) as caught:
        exec(compile("\ntk.ones((2,)) + tk.ones((3,))", "<typed>", "exec"), {"tk": tk})
    assert caught.value.__notes__ == ["at <typed>:2"]
