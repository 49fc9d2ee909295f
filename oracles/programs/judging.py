"""Judging: a program runs in every way that there is; what they give must be equal, or as near as rounding allows.

Eager evaluation on numpy is what all others are compared with.  Each step runs once more, from the values that its
operands had, on the reference backend and on JAX, so no errors come in with them.  The whole program runs under `jit`
(from some step on, so that arguments lie in every way) and under `vmap` (of three sets of leaves, against a loop).

What rounds nothing is equal.  What rounds is within a few units in the last place; where it is not, the steps run
again with their results (or operands) moved by such units, which tells how far apart two right results may be.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import tensorken as tk
from oracles.programs.design import REFUSED_BY_JAX, by_design
from oracles.programs.draft import Draft
from oracles.programs.program import Array, Program, Step
from oracles.programs.shrinking import shrunk

UNITS = 8
"""How many units in the last place a step may be off, without any further question."""

MOVED = 6
"""How often steps run again with operands that are moved."""

SPREAD = 24.0
"""How many times farther apart results may be than those with operands that are moved by two units."""

COMPOSED = ("linalg", "lambda")
"""What stands in steps of many ops, whose errors are relative to their largest intermediate results, 1 or more."""

EXAMPLES = 3

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Disagreement:
    """Two ways to run a program that do not give the same.

    Attributes:
        way: which gave what is not as expected.
        step: where.
        says: what was expected, and what came.
    """

    way: str
    step: Step | None
    says: str

    def __str__(self) -> str:
        return f"{self.way}: {self.step.row if self.step else ''}: {self.says}"


# ---- comparing -------------------------------------------------------------------------------------------------


def apart(found: Array, wanted: Array, exact: bool, signs: bool = False) -> Array:
    """Where two arrays of one shape and dtype differ by more than a few units; or in the signs of zeros, if asked."""
    if wanted.dtype.kind != "f":
        return np.asarray(found != wanted)
    info = np.finfo(wanted.dtype)
    with np.errstate(all="ignore"):
        same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
        if signs:
            same &= (found != 0) | (np.signbit(found) == np.signbit(wanted))
        if not exact:
            a, b = found.astype("float64"), wanted.astype("float64")
            room = UNITS * (float(info.eps) * np.abs(b) + float(info.smallest_subnormal))
            same |= np.isfinite(a) & np.isfinite(b) & (np.abs(a - b) <= room)
            if info.dtype.name != "float64":  # the largest number and infinity are neighbours
                same |= (
                    (np.sign(a) == np.sign(b))
                    & (np.maximum(np.abs(a), np.abs(b)) == np.inf)
                    & (np.minimum(np.abs(a), np.abs(b)) >= float(info.max) * (1 - UNITS * float(info.eps)))
                )
    return np.asarray(~same)


def room(wanted: Array, others: list[Array]) -> Array:
    """How far apart right results may be, from the results of operands that are moved; inf where anything may be."""
    if wanted.dtype.kind != "f":
        return np.asarray(np.any([other != wanted for other in others], axis=0) * np.inf)
    with np.errstate(all="ignore"):
        w = wanted.astype("float64")
        spread = np.zeros(wanted.shape)
        for other in others:
            o = other.astype("float64")
            same = (o == w) | (np.isnan(o) & np.isnan(w))
            step = np.where(np.isfinite(o) & np.isfinite(w), np.abs(o - w), np.inf)
            spread = np.maximum(spread, np.where(same, 0.0, step))
        return np.asarray(SPREAD * spread)


def moved(x: Array, rng: random.Random, by: float = 2.0) -> Array:
    """Numbers moved by up to that many units in their last places."""
    if x.dtype.kind != "f":
        return x
    eps = float(np.finfo(x.dtype).eps)
    factors = np.array([1.0 + eps * by * rng.choice((-1.0, -0.5, 0.5, 1.0)) for _ in range(x.size)])
    with np.errstate(all="ignore"):
        y: Array = (x.astype("float64") * factors.reshape(x.shape)).astype(x.dtype)
        return np.where(np.isfinite(y) | ~np.isfinite(x), y, x)


def described(found: Array, wanted: Array, wrong: Array) -> str:
    """Where two results differ, in one line."""
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    at = f" at {list(place)}" if place else ""
    return f"expected {wanted[place]}, got {found[place]}{at}, {wanted.dtype}{list(wanted.shape)}"


def of_kind(found: Any, wanted: Array) -> str | None:
    """What is wrong with a shape or a dtype."""
    if tuple(found.shape) != wanted.shape or str(found.dtype) != str(wanted.dtype):
        return f"expected {wanted.dtype}{list(wanted.shape)}, got {found.dtype}{list(found.shape)}"
    return None


# ---- a step on its own -------------------------------------------------------------------------------------------


def alone(
    way: str,
    program: Program,
    values: Mapping[str, Array],
    run: Callable[[Step, Mapping[str, Array]], tuple[Array, ...]],
    lenient: bool,
) -> Iterator[Disagreement]:
    """Each step once more, from the values of its operands."""
    for step in program.steps:
        operands = {name: values[name] for name in step.operands}
        wanted = [values[name] for name in step.names]
        try:
            found = run(step, operands)
        except Exception as error:  # noqa: BLE001 -- whatever it raises is judged
            if way == "JAX" and any(says in str(error) for says in REFUSED_BY_JAX):
                continue
            yield Disagreement(way, step, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
            continue
        for name, f, w in zip(step.names, found, wanted, strict=True):
            if lenient and f.dtype != w.dtype and f.dtype.kind == w.dtype.kind and f.shape == w.shape:
                f = f.astype(w.dtype)
            if wrong := of_kind(f, w):
                yield Disagreement(way, step, wrong)
                break
            off = apart(f, w, step.exact, signs=step.exact and way != "JAX")
            if off.any() and not step.exact:
                off &= beyond(f, w, room_of_step(step, operands, step.names.index(name)))
            if off.any() and not step.exact and way == "JAX" and w.dtype in ("float16", "float32"):
                off &= far_from_float64(step, operands, step.names.index(name), w)
            if off.any():
                off &= ~by_design(way, step, operands, f, w)
            if off.any():
                yield Disagreement(way, step, described(f, w, off))
                break


def beyond(found: Array, wanted: Array, allowed: Array) -> Array:
    """Where results are farther apart than allowed."""
    with np.errstate(all="ignore"):
        if wanted.dtype.kind != "f":
            return np.asarray(allowed == 0)
        far = ~(np.abs(found.astype("float64") - wanted.astype("float64")) <= allowed)
    return np.asarray(far & (allowed != np.inf))


def far_from_float64(step: Step, operands: Mapping[str, Array], place: int, ours: Array) -> Array:
    """Where our result is not JAX's of the same operands in float64, which has room for all on the way."""
    text = step.text.replace("float16", "float64").replace("float32", "float64")
    wide = {name: x.astype("float64") if x.dtype.kind == "f" else x for name, x in operands.items()}
    try:
        other = Step(step.row, step.names, text, False)
        with np.errstate(all="ignore"):
            right = on_jax(Program((), (other,)), wide)(other, wide)[place].astype(ours.dtype)
    except Exception:  # noqa: BLE001 -- then it tells nothing
        return np.ones(ours.shape, bool)
    off = apart(right, ours, False)
    return off & beyond(right, ours, room_of_step(step, operands, place)) if off.any() else off


def room_of_step(step: Step, operands: Mapping[str, Array], place: int) -> Array:
    """How far apart results of one step may be."""
    rng = random.Random(step.text)
    wanted = numpy_of(step(tk, tensors(operands))[place])
    others = [
        numpy_of(step(tk, tensors({k: moved(x, rng) for k, x in operands.items()}))[place])
        for _ in range(MOVED)
    ]
    return room(wanted, others) + composed(step, wanted)


def composed(step: Step, wanted: Array) -> float:
    """How far results of a step of many ops may be off, since its intermediate results are rounded."""
    if wanted.dtype.kind != "f" or not wanted.size or not any(mark in step.text for mark in COMPOSED):
        return 0.0
    with np.errstate(all="ignore"):
        finite = np.abs(np.where(np.isfinite(wanted), wanted, 0.0).astype("float64"))
    return SPREAD * float(np.finfo(wanted.dtype).eps) * max(1.0, float(finite.max()))


def numpy_of(x: Any) -> Array:
    """A value as a numpy array."""
    return np.asarray(x)


def tensors(values: Mapping[str, Array]) -> dict[str, Any]:
    """Arrays as tensors."""
    return {name: tk.tensor(x) for name, x in values.items()}


def on_reference(step: Step, operands: Mapping[str, Array]) -> tuple[Array, ...]:
    """A step on the reference backend."""
    with tk.use_backend("reference"):
        return tuple(numpy_of(x) for x in step(tk, tensors(operands)))


def on_jax(
    program: Program, values: Mapping[str, Array]
) -> Callable[[Step, Mapping[str, Array]], tuple[Array, ...]]:
    """What JAX has for the steps of a program, each from these values; they are compiled together."""
    import jax

    from oracles.programs.names import NAMES

    refused: dict[Step, Exception] = {}

    def run(values: Any) -> dict[int, Any]:
        found = {}
        for number, step in enumerate(program.steps):
            try:
                found[number] = step(NAMES, values)
            except Exception as error:  # noqa: BLE001 -- whatever it raises is judged
                refused[step] = error
        return found

    given = {name: jax.numpy.asarray(x) for name, x in values.items()}
    try:
        results = jax.jit(run)(given)
    except (TypeError, NotImplementedError):  # it refuses some at the end of a trace only
        refused.clear()
        results = run(given)

    def result(step: Step, _: Mapping[str, Array]) -> tuple[Array, ...]:
        if step in refused:
            raise refused[step]
        return tuple(numpy_of(x) for x in results[program.steps.index(step)])

    return result


# ---- whole programs ----------------------------------------------------------------------------------------------


def evaluated(program: Program, leaves: Mapping[str, Array]) -> dict[str, Any]:
    """All values, eagerly on numpy."""
    return program.run(tk, tensors(leaves))


def room_of_program(program: Program, leaves: Mapping[str, Array], ends: tuple[str, ...]) -> dict[str, Array]:
    """How far apart right results of a program may be: operands and results of each step that rounds are moved."""
    rng = random.Random(len(program.steps))
    runs: list[dict[str, Array]] = []
    base = {name: numpy_of(x) for name, x in evaluated(program, leaves).items()}
    for _ in range(MOVED):
        found: dict[str, Any] = tensors(leaves)
        for step in program.steps:
            if step.exact:
                found.update(zip(step.names, step(tk, found), strict=True))
                continue
            operands = {name: tk.tensor(moved(numpy_of(found[name]), rng)) for name in step.operands}
            for name, x in zip(step.names, step(tk, operands), strict=True):
                found[name] = tk.tensor(moved(numpy_of(x), rng))
        runs.append({name: numpy_of(found[name]) for name in ends})
    makers = {name: step for step in program.steps for name in step.names}
    return {
        name: room(base[name], [run[name] for run in runs]) + composed(makers[name], base[name])
        for name in ends
    }


def compared(
    way: str,
    program: Program,
    ends: tuple[str, ...],
    found: list[Any],
    wanted: list[Array],
    allowed: Callable[[], dict[str, Array]],
    examples: list[Mapping[str, Array]],
) -> Iterator[Disagreement]:
    """Ends of a whole program against what eager evaluation gave."""
    makers = {name: step for step in program.steps for name in step.names}
    for name, f, w in zip(ends, found, wanted, strict=True):
        if wrong := of_kind(f, w):
            yield Disagreement(way, makers[name], wrong)
            continue
        f = numpy_of(f)
        exact = all(step.exact for step in program.needed([makers[name]]).steps)
        off = apart(f, w, exact, signs=exact)
        if off.any() and not exact:
            off &= beyond(f, w, allowed()[name])
        if off.any():
            kind = "vmap" if "vmap" in way else "jit"
            for leaves in examples:
                values = {key: numpy_of(x) for key, x in evaluated(program, leaves).items()}
                for step in program.needed([makers[name]]).steps:
                    operands = {key: values[key] for key in step.operands}
                    off &= ~by_design(kind, step, operands, f, w)
        if off.any():
            yield Disagreement(way, makers[name], described(f, w, off))


def jitted(program: Program, leaves: Mapping[str, Array], rng: random.Random) -> Iterator[Disagreement]:
    """The program under `jit` from some step on; it has been called with other numbers before."""
    cut = rng.choice((0, 0, len(program.steps) // 2, len(program.steps) - 1))
    head, tail = Program(program.leaves, program.steps[:cut]), program.steps[cut:]
    some = [name for step in tail for name in step.names]
    ends = tuple(
        name for name in some if name in program.ends or (len(program.steps) % 2 and rng.random() < 0.2)
    )
    values = evaluated(head, leaves)
    given = tuple(sorted({name for step in tail for name in step.operands} & values.keys()))

    def run(*xs: Any) -> list[Any]:
        known = dict(zip(given, xs, strict=True))
        for step in tail:
            known.update(zip(step.names, step(tk, known), strict=True))
        return [known[name] for name in ends]

    eager = program.run(tk, values)
    wanted = [numpy_of(eager[name]) for name in ends]
    try:
        compiled = tk.jit(run)
        compiled(*[tk.flip(values[name]) for name in given])
        found = compiled(*[values[name] for name in given])
    except Exception as error:  # noqa: BLE001 -- whatever it raises is judged
        says = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        yield Disagreement(f"jit from step {cut}", None, says)
        return
    yield from compared(
        f"jit from step {cut}",
        program,
        ends,
        found,
        wanted,
        lambda: room_of_program(program, leaves, ends),
        [leaves],
    )


def variant(x: Array, number: int) -> Array:
    """Other numbers of the same kind, for another example."""
    if not number:
        return x
    y = np.roll(x.reshape(-1), number).reshape(x.shape)
    if x.size > 1:
        return y
    if x.dtype.kind == "b":
        return np.asarray(x ^ (number % 2 == 1))
    with np.errstate(all="ignore"):
        return np.asarray(
            x + np.asarray(number, x.dtype) if x.dtype.kind == "i" else x * 0.5 + number, x.dtype
        )


def batched(program: Program, leaves: Mapping[str, Array], rng: random.Random) -> Iterator[Disagreement]:
    """The program under `vmap`, in one of three nestings with `jit`, against a loop over the examples."""
    names = list(leaves)
    axes: list[int | None] = [
        None if rng.random() < 0.25 else rng.randrange(leaves[name].ndim + 1) for name in names
    ]
    if all(axis is None for axis in axes):
        axes[0] = 0
    examples = [
        {
            name: leaves[name] if axis is None else variant(leaves[name], k)
            for name, axis in zip(names, axes, strict=True)
        }
        for k in range(EXAMPLES)
    ]
    ends = program.ends
    try:
        each = [evaluated(program, example) for example in examples]
    except (
        tk.errors.TensorkenError
    ):  # some numbers are refused where they are seen, such as those of singular matrices
        return

    def run(*xs: Any) -> list[Any]:
        values = program.run(tk, dict(zip(names, xs, strict=True)))
        return [values[name] for name in ends]

    way, f = rng.choice(
        (
            ("vmap", tk.vmap(run, tuple(axes))),
            ("jit of vmap", tk.jit(tk.vmap(run, tuple(axes)))),
            ("vmap of jit", tk.vmap(tk.jit(run), tuple(axes))),
        )
    )
    stacked = [
        examples[0][name] if axis is None else np.stack([example[name] for example in examples], axis)
        for name, axis in zip(names, axes, strict=True)
    ]
    try:
        found = f(*[tk.tensor(x) for x in stacked])
    except Exception as error:  # noqa: BLE001 -- whatever it raises is judged
        yield Disagreement(way, None, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
        return
    wanted = [np.stack([numpy_of(values[name]) for values in each]) for name in ends]

    def allowed() -> dict[str, Array]:
        rooms = [room_of_program(program, example, ends) for example in examples]
        return {name: np.stack([r[name] for r in rooms]) for name in ends}

    yield from compared(way, program, ends, found, wanted, allowed, examples)


def differentiated(
    program: Program, leaves: Mapping[str, Array], rng: random.Random
) -> Iterator[Disagreement]:
    """Derivatives of orders 1 to 3, in modes that are drawn, with and without `jit`, against JAX's."""
    modes = ["r", *("".join(rng.choice("fr") for _ in range(order)) for order in (2, 3))]
    xs = [x for x in leaves.values() if x.dtype.kind == "f"]
    ts = [np.cos(np.arange(x.size) + k).reshape(x.shape) for k, x in enumerate(xs)]
    compiled = rng.random() < 0.5

    def ours(xs: list[Array]) -> list[list[Array]]:
        f = of_orders(tk, tk, program, leaves, modes)
        found = (tk.jit(f) if compiled else f)([tk.tensor(x) for x in xs], [tk.tensor(t) for t in ts])
        return [[numpy_of(x) for x in values] for values in found]

    way = f"derivatives {' '.join(modes)}{' under jit' if compiled else ''}"
    try:
        found = ours(xs)
    except Exception as error:  # noqa: BLE001 -- whatever it raises is judged
        yield Disagreement(way, None, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
        return
    try:
        theirs = orders_of_jax(program, leaves, modes)(xs, ts)
    except Exception as error:  # noqa: BLE001 -- whatever it raises is judged
        if not any(says in str(error) for says in REFUSED_BY_JAX):
            yield Disagreement(
                way, None, f"JAX: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
            )
        return
    others: list[list[list[Array]]] = []
    for order, (values, wanted) in enumerate(zip(found, theirs, strict=True)):
        scale = max([1.0, *(float(np.nanmax(np.abs(w))) for w in wanted if w.size and np.isfinite(w).any())])
        for k, (f, w) in enumerate(zip(values, wanted, strict=True)):
            if wrong := of_kind(f, w):
                yield Disagreement(way, None, f"order {order + 1}: {wrong}")
                return
            with np.errstate(all="ignore"):
                off = ~(np.abs(f - w) <= 1e-11 * np.abs(w) + 1e-12 * scale) & ~np.isnan(w) & (f != w)
            if off.any():
                others = others or [ours([moved(x, rng) for x in xs]) for _ in range(3)]
                off &= beyond(f, w, 40 * room(f, [other[order][k] for other in others]) + 1e-10 * scale)
            if off.any():
                yield Disagreement(way, None, f"order {order + 1}: {described(f, w, off)}, by leaf {k}")
                return


def of_orders(
    library: Any, xp: Any, program: Program, leaves: Mapping[str, Array], modes: list[str]
) -> Callable[[list[Any], list[Any]], list[list[Any]]]:
    """A function of the leaves that are floats and of tangents: for each word of modes, the derivative of that order.

    A letter is a derivative along the tangents, by `jvp` (f) or by `grad` (r), of what the letters before it give; the
    last r of a word is the gradient itself.
    """
    names = [name for name, x in leaves.items() if x.dtype.kind == "f"]
    rest = {name: xp.asarray(x) for name, x in leaves.items() if x.dtype.kind != "f"}
    ends = program.ends

    def loss(*xs: Any) -> Any:
        values = program.run(xp, {**rest, **dict(zip(names, xs, strict=True))})
        total = xp.asarray(0.0, dtype="float64")
        for k, name in enumerate(ends):
            y = values[name]
            weights = np.cos(np.arange(int(np.prod(y.shape)), dtype="float64") + k).reshape(y.shape)
            total = total + xp.sum(y.astype("float64") * xp.asarray(weights))
        return total

    def along(f: Any, letter: str, ts: list[Any]) -> Any:
        if letter == "f":
            return lambda *xs: library.jvp(f, tuple(xs), tuple(ts))[1]
        slopes = library.grad(f, tuple(range(len(ts))))
        return lambda *xs: sum(xp.sum(g * t) for g, t in zip(slopes(*xs), ts, strict=True))

    def everything(xs: list[Any], ts: list[Any]) -> list[list[Any]]:
        found = []
        for word in modes:
            f = loss
            for letter in word[:-1]:
                f = along(f, letter, ts)
            if word[-1] == "r":
                found.append(list(library.grad(f, tuple(range(len(xs))))(*xs)))
            else:
                found.append([along(f, "f", ts)(*xs)])
        return found

    return everything


def orders_of_jax(program: Program, leaves: Mapping[str, Array], modes: list[str]) -> Any:
    """The same by JAX, as numpy arrays."""
    import jax

    from oracles.programs.names import NAMES

    compiled = jax.jit(of_orders(jax, NAMES, program, leaves, modes))

    def run(xs: list[Array], ts: list[Array]) -> list[list[Array]]:
        return [[numpy_of(x) for x in values] for values in compiled(xs, ts)]

    return run


WAYS = ("reference", "JAX", "jit", "vmap", "derivatives")


def judged(program: Program, seed: int, ways: tuple[str, ...] = WAYS) -> Iterator[Disagreement]:
    """All disagreements of a program."""
    leaves = {leaf.name: leaf.values for leaf in program.leaves}
    rng = random.Random(f"judging {seed}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = {name: numpy_of(x) for name, x in evaluated(program, leaves).items()}
        if "reference" in ways:
            yield from alone("reference", program, values, on_reference, lenient=False)
        if "JAX" in ways:
            yield from alone("JAX", program, values, on_jax(program, values), lenient=True)
        if "jit" in ways:
            yield from jitted(program, leaves, rng)
        if "vmap" in ways:
            yield from batched(program, leaves, rng)
        if "derivatives" in ways and seed % 3 == 2:
            yield from differentiated(program, leaves, rng)


def examined(draft: Draft, seed: int, ways: tuple[str, ...] = WAYS) -> str | None:
    """The first disagreement about a program that was drawn: what differs, and a small program that shows it."""
    program = draft.program
    if draft.error is not None:
        step = program.steps[-1]
        says = f"{type(draft.error).__name__}: {draft.error}"
        values = {name: numpy_of(x) for name, x in draft.found.items()}
        return f"refused: {step.row}: {says}\n{program.only([step], values).script()}"
    found = first(program, seed, ways)
    if found is None:
        return None
    way = found.way.split()[0]
    ways = {"reference": ("reference",), "JAX": ("JAX",), "derivatives": ("derivatives",)}.get(
        way, ("jit", "vmap")
    )
    values = {name: numpy_of(x) for name, x in draft.found.items()}
    small = shrunk(program, values, lambda other: first(other, seed, ways) is not None)
    return f"{first(small, seed, ways) or found}\n{small.script()}"


def first(program: Program, seed: int, ways: tuple[str, ...]) -> Disagreement | None:
    """The first disagreement about a program, if there is any."""
    try:
        return next(judged(program, seed, ways), None)
    except tk.errors.TensorkenError:  # a smaller program that is no program
        return None
