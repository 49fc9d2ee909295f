"""programs.effects: the effects of callbacks occur once and in order each time that a program runs."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.case import Case, Failure
from tensorken_conformance.law import law
from tensorken_conformance.oracles import exact
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

    def constant(self, value: int, like: Any) -> Any:
        """A tensor that programs capture."""
        return tk.tensor(value, backend=like.interpreter.base)

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


class Expected:
    """The effects that a program must have, and its control flow, in numpy.

    Whole numbers of Python are the same for all examples of a batch, arrays and their elements are not.

    Attributes:
        found: the lines of each effect, and whether the examples of a batch share it.
    """

    def __init__(self) -> None:
        self.found: list[tuple[list[str], bool]] = []

    jit = staticmethod(lambda f: f)

    @property
    def lines(self) -> list[str]:
        """The lines of all effects."""
        return [line for lines, _ in self.found for line in lines]

    def io(self, label: str, *values: Any) -> None:
        """Any effect without a result."""
        self.found.append(([" ".join([label, *map(str, values)])], all(isinstance(v, int) for v in values)))

    debug = print = io

    def doubled(self, label: str, x: Any) -> Any:
        """2 * x, with an effect."""
        self.io(label, x)
        return 2 * x

    def doubled_purely(self, x: Any) -> Any:
        """2 * x."""
        return 2 * x

    def constant(self, value: int, like: Any) -> Any:
        """A number."""
        return value

    def grad(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """The derivative of a sum of squares."""
        return lambda x: (f(x), 2 * x)[1]

    def vmap(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """The function of rows: an effect occurs for all of them before the next one."""

        def mapped(rows: Array) -> Array:
            before, of_each, ys = self.found, [], []
            for row in rows:
                self.found = []
                ys.append(f(row))
                of_each.append(self.found)
            self.found = before
            for same in zip(*of_each, strict=True):
                lines, shared = same[0]
                before.append((lines if shared else [line for own, _ in same for line in own], shared))
            return np.stack(ys)

        return mapped

    def cond(self, condition: bool, first: Callable[..., Any], second: Callable[..., Any], x: Any) -> Any:
        """One of two functions."""
        return first(x) if condition else second(x)

    def while_loop(self, goes_on: Callable[..., Any], step: Callable[..., Any], state: Any) -> Any:
        """The state after the last step."""
        while goes_on(state):
            state = step(state)
        return state

    def fori_loop(self, start: int, end: int, step: Callable[..., Any], carry: Any) -> Any:
        """The carry after the last step."""
        for i in range(start, end):
            carry = step(i, carry)
        return carry

    def scan(self, step: Callable[..., Any], carry: Any, xs: Array, reverse: bool = False) -> Any:
        """The last carry, and the results of the steps."""
        ys = []
        for x in xs[::-1] if reverse else xs:
            carry, y = step(carry, x)
            ys.append(y)
        return carry, np.array(ys)


Function = Callable[[Any, Any, Any, Any], Any]
"""Takes tensorken and `Effects`, or `Expected` for both; a vector, and a number."""


def _in_order(xp: Any, effects: Any, x: Any, n: Any) -> Any:
    effects.io("a", x)
    y = x * 2
    effects.debug("b", y)
    effects.print("c", x + n)
    effects.io("d", y)
    effects.print("e", y)
    return y + x


def _repeated(xp: Any, effects: Any, x: Any, n: Any) -> Any:
    for _ in range(2):
        effects.io("a", x)
        effects.debug("b", x + 1)
    return (x + 1) * n


def _unused(xp: Any, effects: Any, x: Any, n: Any) -> Any:
    effects.doubled("a", x)
    return x * n


def _used(xp: Any, effects: Any, x: Any, n: Any) -> Any:
    y = effects.doubled("a", x * n)
    return effects.doubled("b", y + 1) * x


def _without_operands(xp: Any, effects: Any, x: Any, n: Any) -> Any:
    effects.io("a")
    effects.io("b", x)
    effects.io("a")
    return x + n


def _captured(xp: Any, effects: Any, x: Any, n: Any) -> Any:
    three = effects.constant(3, n)
    effects.io("a", three)
    effects.print("b", three)
    return x * n


def _pure(xp: Any, effects: Any, x: Any, n: Any) -> Any:
    return effects.doubled_purely(x + n) + x


def _scan(xp: Any, effects: Any, x: Any, n: Any) -> Any:
    def step(carry: Any, element: Any) -> Any:
        effects.io("element", element)
        after = carry + element
        effects.debug("after", after)
        return after, element * 2

    total, doubled = xp.scan(step, x, x)
    effects.print("end", total)
    return total + doubled * n


def _scan_in_reverse(xp: Any, effects: Any, x: Any, n: Any) -> Any:
    def step(carry: Any, element: Any) -> Any:
        effects.print("element", element)
        return carry + effects.doubled("twice", element), None

    return xp.scan(step, x * n, x, reverse=True)[0]


def _same_in_each_step(xp: Any, effects: Any, x: Any, n: Any) -> Any:
    def step(i: Any, carry: Any) -> Any:
        effects.io("same", n)
        effects.debug("x", x)
        return carry + x

    return xp.fori_loop(0, 3, step, x)


def _while(xp: Any, effects: Any, x: Any, n: Any) -> Any:
    def goes_on(state: Any) -> Any:
        effects.debug("at", state[0])
        return state[0] < n

    def step(state: Any) -> Any:
        i, y = state
        effects.io("step", y)
        return i + 1, y * 2

    y = xp.while_loop(goes_on, step, (n - n, x))[1]
    effects.io("end", y)
    return y


def _cond(xp: Any, effects: Any, x: Any, n: Any) -> Any:
    def first(x: Any) -> Any:
        effects.io("first", x)
        return x + 1

    def second(x: Any) -> Any:
        effects.io("second", x)
        return effects.doubled("of second", x)

    return xp.cond(n > COUNT, first, second, x) + xp.cond(n > 0, first, second, x)


def _cond_in_loop(xp: Any, effects: Any, x: Any, n: Any) -> Any:
    def even(x: Any) -> Any:
        effects.debug("even", x)
        return x + 1

    def odd(x: Any) -> Any:
        effects.io("odd", x)
        return x * 2

    return xp.fori_loop(0, 3, lambda i, x: xp.cond(i == 1, odd, even, x), x * n)


def _called_twice(xp: Any, effects: Any, x: Any, n: Any) -> Any:
    def inner(x: Any) -> Any:
        effects.io("inner", x)
        return x + 1

    def unused(x: Any) -> Any:
        effects.print("unused", x)
        return x * 2

    compiled = xp.jit(inner)
    first, second = compiled(x), compiled(x)
    xp.jit(unused)(first)
    return first * second * n


def _inner_vmap(xp: Any, effects: Any, x: Any, n: Any) -> Any:
    def of_element(e: Any) -> Any:
        effects.io("a", e)
        effects.debug("b", e * n)
        return e * n

    return xp.vmap(of_element)(x)


def _inner_grad(xp: Any, effects: Any, x: Any, n: Any) -> Any:
    def inner(x: Any) -> Any:
        effects.debug("before", x)
        y = x * x
        effects.io("after", y)
        return y.sum()

    return xp.grad(inner)(x) * n


NO_REVERSE_MODE = ("while_loop",)

PROGRAMS: dict[str, Function] = {
    "three kinds": _in_order,
    "equal effects": _repeated,
    "unused results": _unused,
    "used results": _used,
    "no operands": _without_operands,
    "captured tensor": _captured,
    "pure callback": _pure,
    "scan": _scan,
    "reverse scan": _scan_in_reverse,
    "same in each step": _same_in_each_step,
    "while_loop": _while,
    "cond": _cond,
    "cond in a loop": _cond_in_loop,
    "inner jit called twice": _called_twice,
    "inner vmap": _inner_vmap,
    "inner grad": _inner_grad,
}
"""Functions with effects, by their names in reports."""


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
    function = PROGRAMS[name]
    random, shape = subject.random(case), (EXAMPLES, SIZE) if "vmap" in mode else (SIZE,)
    values = np.array([random.randint(1, 4) for _ in range(int(np.prod(shape)))], case.dtype).reshape(shape)
    expected = Expected()

    def model(x: Array) -> Any:
        return function(expected, expected, x, COUNT)

    y = (expected.vmap(model) if "vmap" in mode else model)(values)
    log = Effects()
    run = MODES[mode](lambda x, n: function(tk, log, x, n))
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
            _agree(case, values, found, expected.lines, call)
            got = subject.read(result)
            says = f"{name}, {mode}, {call}: x = {values.tolist()}"
            exact.same(got, np.asarray(y, got.dtype), says, either_zero=True)
            if name == "pure callback" and log.pure_calls == before:
                raise Failure(f"{name}, {mode}, {call}: expected a call of the Python function, got none")


def _agree(case: Case, values: Array, found: Sequence[str], expected: Sequence[str], when: str) -> None:
    """Raise a Failure unless the effects are the expected ones, in their order."""
    for number, (wanted, got) in enumerate(zip_longest(expected, found, fillvalue="no more effects"), 1):
        if wanted != got:
            raise Failure(
                f"{case.op}, {case.detail}: x = {values.tolist()}: {when}, effect {number}: expected {wanted!r}, "
                f"got {got!r}; {len(expected)} effects expected, {len(found)} found"
            )
