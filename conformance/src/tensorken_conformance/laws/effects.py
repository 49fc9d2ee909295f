"""programs.effects: the effects of callbacks occur once and in order each time that a program runs."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.case import Case, Failure
from tensorken_conformance.law import law
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES

EXAMPLES, SIZE = 2, 3
"""The number of examples of a batch, and the length of each."""

COUNT = 2
"""The second operand, a number that all examples share."""


class Effects(io.StringIO):
    """The effects of a run, as lines of text: a label and a value.  Printed lines are among them."""

    def __init__(self) -> None:
        super().__init__()
        self.pure_calls = 0

    def note(self, label: str, *values: Any) -> None:
        """Add a line."""
        self.write(" ".join([label, *map(str, values)]) + "\n")

    def taken(self) -> list[str]:
        """All lines, which are removed."""
        lines = self.getvalue().splitlines()
        self.seek(0)
        self.truncate()
        return lines

    def io(self, label: str, *xs: Any) -> None:
        """An effect without a result."""
        tk.io_callback(lambda *values: self.note(label, *values), None, *xs)

    def debug(self, label: str, x: Any) -> None:
        """An effect of `tk.debug.callback`."""
        tk.debug.callback(lambda value: self.note(label, value), x)

    def print(self, label: str, x: Any) -> None:
        """A line of `tk.debug.print`."""
        tk.debug.print(label + " {}", x)

    def doubled(self, label: str, x: Any) -> Any:
        """2 * x, from a callback with an effect."""

        def function(value: Any) -> Any:
            self.note(label, value)
            return 2 * value

        return tk.io_callback(function, x, tk.stop_gradient(x))

    def doubled_purely(self, x: Any) -> Any:
        """2 * x, from a callback without effects."""

        def function(value: Any) -> Any:
            self.pure_calls += 1
            return 2 * value

        return tk.pure_callback(function, x, tk.stop_gradient(x), vmap_method="sequential")


Function = Callable[[Effects, Any, Any], Any]
"""Takes a vector and a number."""

Model = Callable[[Callable[..., None], Any, int], Any]
"""The same in numpy, for a vector or a batch; its first argument notes a label and a value for each example."""


def _in_order(effects: Effects, x: Any, n: Any) -> Any:
    effects.io("a", x)
    y = x * 2
    effects.debug("b", y)
    effects.print("c", x + n)
    effects.io("d", y)
    effects.print("e", y)
    return y + x


def _in_order_model(note: Callable[..., None], x: Any, n: int) -> Any:
    for label, value in zip("abcde", (x, x * 2, x + n, x * 2, x * 2), strict=True):
        note(label, value)
    return x * 3


def _repeated(effects: Effects, x: Any, n: Any) -> Any:
    for _ in range(2):
        effects.io("a", x)
        effects.debug("b", x + 1)
    return (x + 1) * n


def _repeated_model(note: Callable[..., None], x: Any, n: int) -> Any:
    for _ in range(2):
        note("a", x)
        note("b", x + 1)
    return (x + 1) * n


def _unused(effects: Effects, x: Any, n: Any) -> Any:
    effects.doubled("a", x)
    return x * n


def _unused_model(note: Callable[..., None], x: Any, n: int) -> Any:
    note("a", x)
    return x * n


def _used(effects: Effects, x: Any, n: Any) -> Any:
    y = effects.doubled("a", x * n)
    return effects.doubled("b", y + 1) * x


def _used_model(note: Callable[..., None], x: Any, n: int) -> Any:
    note("a", x * n)
    note("b", 2 * x * n + 1)
    return 2 * (2 * x * n + 1) * x


def _without_operands(effects: Effects, x: Any, n: Any) -> Any:
    effects.io("a")
    effects.io("b", x)
    effects.io("a")
    return x + n


def _without_operands_model(note: Callable[..., None], x: Any, n: int) -> Any:
    note("a")
    note("b", x)
    note("a")
    return x + n


def _captured(effects: Effects, x: Any, n: Any) -> Any:
    three = tk.tensor(3, backend=n.interpreter.base)
    effects.io("a", three)
    effects.print("b", three)
    return x * n


def _captured_model(note: Callable[..., None], x: Any, n: int) -> Any:
    note("a", np.array(3))
    note("b", np.array(3))
    return x * n


def _pure(effects: Effects, x: Any, n: Any) -> Any:
    return effects.doubled_purely(x + n) + x


def _scan(effects: Effects, x: Any, n: Any) -> Any:
    def step(carry: Any, element: Any) -> Any:
        effects.io("element", element)
        after = carry + element
        effects.debug("after", after)
        return after, element * 2

    total, doubled = tk.scan(step, x, x)
    effects.print("end", total)
    return total + doubled * n


def _scan_model(note: Callable[..., None], x: Any, n: int) -> Any:
    total = x
    for i in range(SIZE):
        note("element", x[..., i])
        total = total + x[..., i, None]
        note("after", total)
    note("end", total)
    return total + 2 * x * n


def _scan_in_reverse(effects: Effects, x: Any, n: Any) -> Any:
    def step(carry: Any, element: Any) -> Any:
        effects.print("element", element)
        return carry + effects.doubled("twice", element), None

    return tk.scan(step, x * n, x, reverse=True)[0]


def _scan_in_reverse_model(note: Callable[..., None], x: Any, n: int) -> Any:
    for i in reversed(range(SIZE)):
        note("element", x[..., i])
        note("twice", x[..., i])
    return x * n + 2 * x.sum(-1, keepdims=True)


def _same_in_each_step(effects: Effects, x: Any, n: Any) -> Any:
    def step(i: Any, carry: Any) -> Any:
        effects.io("same", n)
        effects.debug("x", x)
        return carry + x

    return tk.fori_loop(0, 3, step, x)


def _same_in_each_step_model(note: Callable[..., None], x: Any, n: int) -> Any:
    for _ in range(3):
        note("same", np.array(n))
        note("x", x)
    return 4 * x


def _while(effects: Effects, x: Any, n: Any) -> Any:
    def goes_on(state: Any) -> Any:
        effects.debug("at", state[0])
        return state[0] < n

    def step(state: Any) -> Any:
        i, y = state
        effects.io("step", y)
        return i + 1, y * 2

    y = tk.while_loop(goes_on, step, (n - n, x))[1]
    effects.io("end", y)
    return y


def _while_model(note: Callable[..., None], x: Any, n: int) -> Any:
    for i in range(n):
        note("at", np.array(i))
        note("step", x * 2**i)
    note("at", np.array(n))
    note("end", x * 2**n)
    return x * 2**n


def _cond(effects: Effects, x: Any, n: Any) -> Any:
    def first(x: Any) -> Any:
        effects.io("first", x)
        return x + 1

    def second(x: Any) -> Any:
        effects.io("second", x)
        return effects.doubled("of second", x)

    return tk.cond(n > COUNT, first, second, x) + tk.cond(n > 0, first, second, x)


def _cond_model(note: Callable[..., None], x: Any, n: int) -> Any:
    note("second", x)
    note("of second", x)
    note("first", x)
    return 3 * x + 1


def _cond_in_loop(effects: Effects, x: Any, n: Any) -> Any:
    def even(x: Any) -> Any:
        effects.debug("even", x)
        return x + 1

    def odd(x: Any) -> Any:
        effects.io("odd", x)
        return x * 2

    return tk.fori_loop(0, 3, lambda i, x: tk.cond(i == 1, odd, even, x), x * n)


def _cond_in_loop_model(note: Callable[..., None], x: Any, n: int) -> Any:
    note("even", x * n)
    note("odd", x * n + 1)
    note("even", 2 * (x * n + 1))
    return 2 * (x * n + 1) + 1


def _called_twice(effects: Effects, x: Any, n: Any) -> Any:
    @tk.jit
    def inner(x: Any) -> Any:
        effects.io("inner", x)
        return x + 1

    @tk.jit
    def unused(x: Any) -> Any:
        effects.print("unused", x)
        return x * 2

    first, second = inner(x), inner(x)
    unused(first)
    return first * second * n


def _called_twice_model(note: Callable[..., None], x: Any, n: int) -> Any:
    note("inner", x)
    note("inner", x)
    note("unused", x + 1)
    return (x + 1) ** 2 * n


def _inner_vmap(effects: Effects, x: Any, n: Any) -> Any:
    def of_element(e: Any) -> Any:
        effects.io("a", e)
        effects.debug("b", e * n)
        return e * n

    return tk.vmap(of_element)(x)


def _inner_vmap_model(note: Callable[..., None], x: Any, n: int) -> Any:
    for label, y in (("a", x), ("b", x * n)):
        for e in y.ravel():
            note(label, e)
    return x * n


def _inner_grad(effects: Effects, x: Any, n: Any) -> Any:
    def inner(x: Any) -> Any:
        effects.debug("before", x)
        y = x * x
        effects.io("after", y)
        return y.sum()

    return tk.grad(inner)(x) * n


def _inner_grad_model(note: Callable[..., None], x: Any, n: int) -> Any:
    note("before", x)
    note("after", x * x)
    return 2 * x * n


SCALARS = ("element", "twice")
"""The labels of values without axes; the others are vectors, except in `inner vmap`."""

NO_REVERSE_MODE = ("while_loop",)

PROGRAMS: dict[str, tuple[Function, Model]] = {
    "three kinds": (_in_order, _in_order_model),
    "equal effects": (_repeated, _repeated_model),
    "unused results": (_unused, _unused_model),
    "used results": (_used, _used_model),
    "no operands": (_without_operands, _without_operands_model),
    "captured tensor": (_captured, _captured_model),
    "pure callback": (_pure, lambda note, x, n: 2 * (x + n) + x),
    "scan": (_scan, _scan_model),
    "reverse scan": (_scan_in_reverse, _scan_in_reverse_model),
    "same in each step": (_same_in_each_step, _same_in_each_step_model),
    "while_loop": (_while, _while_model),
    "cond": (_cond, _cond_model),
    "cond in a loop": (_cond_in_loop, _cond_in_loop_model),
    "inner jit called twice": (_called_twice, _called_twice_model),
    "inner vmap": (_inner_vmap, _inner_vmap_model),
    "inner grad": (_inner_grad, _inner_grad_model),
}
"""For each name a function with effects, and the same in numpy."""


def _value(f: Callable[..., Any]) -> Callable[..., Any]:
    """The result, from a reverse-mode derivative."""

    def value_under_grad(x: Any, n: Any) -> Any:
        def loss(x: Any) -> Any:
            y = f(x, n)
            return y.sum(), y

        (_, y), _ = tk.value_and_grad(loss, has_aux=True)(x)
        return y

    return value_under_grad


def _batch(f: Callable[..., Any]) -> Callable[..., Any]:
    return tk.vmap(f, (0, None))


def _traced(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function as one program, which is traced at its first call."""
    programs: list[Any] = []

    def run(x: Any, n: Any) -> Any:
        programs[:] = programs or [tk.trace(f)(x, n)]
        return programs[0](x, n)

    return run


MODES: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "values": lambda f: f,
    "jit": tk.jit,
    "trace": _traced,
    "jvp": lambda f: lambda x, n: tk.jvp(lambda x: f(x, n), (x,), (x,))[0],
    "grad": _value,
    "jit-of-grad": lambda f: tk.jit(_value(f)),
    "grad-of-jit": lambda f: _value(tk.jit(f)),
    "vmap": _batch,
    "jit-of-vmap": lambda f: tk.jit(_batch(f)),
    "jit-of-vmap-of-grad": lambda f: tk.jit(_batch(_value(f))),
}
"""How a program runs; its value is the same everywhere."""

FEW = {"scan": ("jit", "jit-of-vmap-of-grad"), "three kinds": ("jit",)}
"""The programs and modes of a smoke run."""


def cases(subject: Subject) -> Iterator[Case]:
    """Each program in each mode; a smoke run takes three."""
    floats = [dtype.name for dtype in subject.dtypes() if dtype.kind == "float" and dtype.itemsize >= 4]
    if not floats or "int32" not in subject.capabilities.dtypes:
        return
    for name in PROGRAMS if subject.depth != "smoke" else FEW:
        for mode in MODES if subject.depth != "smoke" else FEW[name]:
            if name not in NO_REVERSE_MODE or "grad" not in mode:
                yield Case("programs.effects", name.replace(" ", "-"), floats[0], detail=mode)


@law("programs.effects", cases, level=4, stage=3)
def effects(subject: Subject, case: Case) -> None:
    """The effects of a program occur once and in order in each call, and none occurs while it is traced.

    They are over when the call returns, and get the primal values under derivatives, and those of each example in a
    batch.
    """
    name, mode = case.op.replace("-", " "), case.detail
    function, model = PROGRAMS[name]
    random, shape = subject.random(case), (EXAMPLES, SIZE) if "vmap" in mode else (SIZE,)
    values = np.array([random.randint(1, 4) for _ in range(int(np.prod(shape)))], case.dtype).reshape(shape)
    expected: list[str] = []

    def note(label: str, *found: Any) -> None:
        """The lines of one effect, one for each example if they have different values."""
        rank = 0 if label in SCALARS or name == "inner vmap" else 1
        examples = found[0] if found and found[0].ndim > rank else [*found] or [""]
        expected.extend([f"{label} {value}".rstrip() for value in examples])

    y = model(note, values, COUNT)
    log = Effects()
    run = MODES[mode](lambda x, n: function(log, x, n))
    with tk.use_backend(subject.stack):
        x = subject.tensor(values, DTYPES[case.dtype], subject.stack)
        n = subject.tensor(np.array(COUNT), DTYPES["int32"], subject.stack)
        if mode == "jit":
            run.lower(x, n)  # type: ignore[attr-defined]
            _agree(case, values, log.taken(), [], "while it is traced")
        for call in ("the first call", "the second call"):
            before = log.pure_calls
            with contextlib.redirect_stdout(log):
                result = run(x, n)
                found = log.taken()
            _agree(case, values, found, expected, call)
            got = subject.read(result)
            if got.shape != y.shape or not np.array_equal(got, y):
                raise Failure(
                    f"{name}, {mode}, {call}: x = {values.tolist()}: expected {y.tolist()}, got {got.tolist()!r:.100}"
                )
            if name == "pure callback" and log.pure_calls == before:
                raise Failure(f"{name}, {mode}, {call}: expected a call of the Python function, got none")


def _agree(case: Case, values: Array, found: Sequence[str], expected: Sequence[str], when: str) -> None:
    """Raise a Failure unless the effects are the expected ones, in their order."""
    if list(found) == list(expected):
        return
    same = [one == other for one, other in zip(found, expected, strict=False)]
    place = same.index(False) if False in same else len(same)
    wanted, got = (
        repr(lines[place]) if place < len(lines) else "no more effects" for lines in (expected, found)
    )
    raise Failure(
        f"{case.op}, {case.detail}: x = {values.tolist()}: {when}, effect {place + 1}: expected {wanted}, got {got}; "
        f"{len(expected)} effects expected, {len(found)} found"
    )
