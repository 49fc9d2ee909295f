"""jit: a function traced once for each kind of arguments, and run as a prepared program ever after."""

from __future__ import annotations

import functools
import inspect
import operator
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any
from weakref import WeakKeyDictionary

from tensorken.arrays.creation import tensor
from tensorken.compilation.call_op import call
from tensorken.compilation.donation import Donated, give_away
from tensorken.compilation.eager import jit_is_disabled
from tensorken.compilation.fast_path import RecentCall
from tensorken.compilation.packing import packing, unpacking
from tensorken.compilation.static_arguments import StaticArguments, StaticParameters
from tensorken.programs.execution import prepared
from tensorken.programs.names import labels_of, parameters_of
from tensorken_core import tree
from tensorken_core.errors import ArgumentError, RetraceWarning
from tensorken_core.host.loading import Run
from tensorken_core.language.dtypes import DType, bool_, int32
from tensorken_core.language.observe import OBSERVERS
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.levels.trace import Source, traced
from tensorken_core.program.program import Program
from tensorken_core.rewriting.wrapper import DonatableArgs
from tensorken_core.tensor.coercion import as_operand
from tensorken_core.tensor.level import interpreter_below
from tensorken_core.tensor.tensor import Tensor, as_tensor
from tensorken_core.transforms.arguments import Argnums, Function, Static, check_function, places_of
from tensorken_core.transforms.grad import TRANSFORMED

__all__ = ["jit"]

MAX_PROGRAMS = 256
"""How many programs one function keeps; the oldest goes first."""

WARN_AFTER_TRACES = 16
"""How many tracings by one `jit` of a function, and each doubling of that, are worth a warning."""

NEW_JIT_FACTOR = 8
"""How many times as many tracings are, if each is the first of a new `jit`, as of models that are made one by one."""

_tracings: WeakKeyDictionary[CodeType, int] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class CacheKey:
    """What arguments must have in common to be served by one program."""

    structure: tree.Structure
    fixed: StaticArguments
    base: Any
    types: tuple[tuple[Shape, DType], ...]


@dataclass(slots=True)
class Executable:
    """A program, and what runs it on its backend."""

    program: Program
    extra: list[Tensor]  # of enclosing transforms: used by the function without being an argument
    types: list[tuple[Shape, DType]]
    result: tree.Structure
    donated: tuple[int, ...] = ()  # the places of the leaves that are given away
    backend: Any = None
    run: Run | None = None
    unpack: Callable[[Any], list[Any] | None] | None = None  # from arguments like these to their leaves
    pack: Callable[[list[Tensor]], Any] = field(init=False)  # from the results to the tree of them

    def __post_init__(self) -> None:
        self.pack = packing(self.result)

    def of(self, ys: Sequence[Any]) -> Any:
        """The function's result, from representations on the backend."""
        backend = self.backend
        tensors = [Tensor(backend, y, shape, dtype) for y, (shape, dtype) in zip(ys, self.types, strict=True)]
        return self.pack(tensors)


@dataclass(slots=True)
class TraceCache:
    """What one function was traced for so far."""

    name: str
    code: CodeType | None
    programs: dict[Any, Executable] = field(default_factory=dict)
    recent: RecentCall | None = None
    last: CacheKey | None = None
    count: int = 0

    def note(self, kind: CacheKey, found: Executable) -> None:
        """Count a tracing, and warn of many."""
        cause = _cause(self.last, kind, found)
        self.count += 1
        count, many = self.count, WARN_AFTER_TRACES
        if self.last is None and self.code is not None:
            count = _tracings[self.code] = _tracings.get(self.code, 0) + 1
            many *= NEW_JIT_FACTOR
        self.last = kind
        if count >= many and count & (count - 1) == 0:
            warnings.warn(
                f"jit: {self.name} has been traced {count} times, which is slow; the last time because {cause}",
                RetraceWarning,
                stacklevel=4,
            )


def jit(
    f: Function,
    *,
    static_argnums: Argnums = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: Argnums = (),
) -> Callable[..., Any]:
    """The same function, traced at its first call with arguments of given shapes and dtypes; then only its ops run.

    Numbers and arrays among the arguments become tensors.  Python code in f runs while it is traced and not again, so f
    must depend on its arguments alone, and give the same for the same.  Derivatives and vmap of the result work to any
    depth, and their programs are made once too; the gradient of the result is compiled like the function itself.

    Args:
        f: a function of pytrees of tensors and numbers.
        static_argnums: the places of positional arguments that f gets as they are, which must be hashable; f is traced
            anew for each value of them.
        static_argnames: the names of such arguments.  If only the places are given, or only the names, f's signature
            tells the others, so that a static argument may be given by position or by name.
        donate_argnums: the places of positional arguments that are not used after the call, so that results may take
            their memory; their tensors are gone then, even if the call fails, and using one is an error.

    Raises:
        ArgumentError: if f has no such parameters; when called, if an argument is no tensor, number or array and not
            static.
        ConcretizationError: when called, where f asks for a value of a tensor, as by `if x > 0`; `tk.disable_jit` runs
            f on values, to look at them.

    >>> import tensorken as tk
    >>> loss = tk.jit(lambda w, x: ((x @ w) ** 2).sum())
    >>> w, x = tk.ones(3), tk.ones((2, 3))
    >>> loss(w, x).item(), tk.grad(loss)(w, x).tolist()
    (18.0, [12.0, 12.0, 12.0])
    >>> power = tk.jit(lambda x, n: x**n, static_argnames="n")
    >>> power(2.0, 3).item(), power(2.0, n=3).item()
    (8.0, 8.0)
    """
    check_function("jit", f)
    statics = StaticParameters.of(f, static_argnums, static_argnames)
    name = getattr(f, "__name__", "function")
    tracings = TraceCache(name, getattr(inspect.unwrap(f), "__code__", None))
    programs = tracings.programs
    plain = not (statics.argnums or statics.names or donate_argnums != ())

    @functools.wraps(f)
    def jitted(*arguments: Any, **keywords: Any) -> Any:
        if jit_is_disabled():
            return _in_python(f, name, statics, arguments, keywords)
        recent = tracings.recent
        if recent is not None and not OBSERVERS:
            given = recent.given(arguments, keywords)
            if given is not None:
                return recent.result(recent.run(given))
        if plain and not keywords and arguments:
            try:
                found = programs.get(_key(arguments))
            except AttributeError:  # an argument is no tensor
                found = None
            if found is not None and not OBSERVERS:
                return found.of(found.run([x.representation for x in arguments]))  # type: ignore[misc]
        return _call(f, tracings, statics, donate_argnums, arguments, keywords)

    made: dict[Any, Callable[..., Any]] = {}

    def once(key: Any, transform: Callable[[Function], Function]) -> Callable[..., Any]:
        if key not in made:
            transformed = transform(f)
            transformed.__name__ = f"{key[0]} of {name}"
            made[key] = jit(transformed, static_argnums=statics.argnums, static_argnames=[*statics.names])
        return made[key]

    jitted.__dict__[TRANSFORMED] = (jitted, once)
    return jitted


def _call(
    f: Function,
    tracings: TraceCache,
    statics: StaticParameters,
    donate_argnums: Argnums,
    arguments: tuple[Any, ...],
    keywords: dict[str, Any],
) -> Any:
    """A call with arguments of any kind."""
    name = tracings.name
    donated = _places("donate_argnums", donate_argnums, len(arguments))
    fixed, leaves, structure = _divided(statics, arguments, keywords)
    static = [i for i, _ in fixed if isinstance(i, int)]
    xs = _tensors(name, leaves)
    base = (xs[0] if xs else as_tensor(0.0)).interpreter.base
    kind = CacheKey(structure, fixed, base, tuple([(x.shape, x.dtype) for x in xs]))
    try:
        found = tracings.programs.get(kind)
    except TypeError as error:
        raise ArgumentError(
            f"jit: {name}: a static argument cannot be hashed: {error}; pass it as an array"
        ) from None
    if found is None:
        given_away = (
            [place for i, place in _leaves_of_each(arguments, static) if i in donated] if donated else []
        )
        found = _traced(f, name, xs, kind, given_away)
        tracings.note(kind, found)
        if not found.extra:  # what belongs to an enclosing transform ends with it
            _keep(tracings.programs, kind, found)
    operands = [*xs, *found.extra]
    on_backend = isinstance(base, RawTensor) and all([x.interpreter is base for x in operands])
    if on_backend or not operands:
        backend: Any = base if on_backend else found.program.backend
        run = found.run
        if OBSERVERS:
            run = prepared(found.program, backend)
        elif run is None:
            run = found.run = prepared(found.program, backend)
        found.backend = backend
        given_as_tensors = all(map(operator.is_, xs, leaves))  # a call with numbers is not recognised
        if xs and given_as_tensors and found.run is not None and not found.extra:
            plain = not (fixed or keywords or donated)
            if plain and all([type(x) is Tensor for x in arguments]):  # whose shapes are known now
                _keep(tracings.programs, _key(xs), found)
            else:
                tracings.recent = _recent(name, kind, xs, found)
        given = DonatableArgs([x.representation for x in operands])
        if found.donated:
            give_away([xs[i] for i in found.donated if xs[i] is leaves[i]], Donated(base, name))
        return found.of(run(given))
    return tree.unflatten(found.result, call(found.program, operands))


def _divided(
    statics: StaticParameters, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[StaticArguments, list[Any], tree.Structure]:
    """The static arguments by place or name, and the leaves of the others with their structure."""
    if not statics.argnums and not statics.names:
        return (), *tree.flatten((arguments, keywords))
    count = len(arguments)
    argnums = [i for i in statics.argnums if not statics.optional or i < count]
    given = argnums[0] if len(argnums) == 1 else tuple(argnums)
    static = set(_places("static_argnums", given, count) if argnums else ())
    named = sorted(statics.names.intersection(keywords))
    fixed: StaticArguments = (
        *[(i, Static(arguments[i])) for i in sorted(static)],
        *[(n, Static(keywords[n])) for n in named],
    )
    varying = tuple([x for i, x in enumerate(arguments) if i not in static])
    rest = {n: x for n, x in keywords.items() if n not in named}
    return fixed, *tree.flatten((varying, rest))


def _joined(fixed: StaticArguments, varying: Any) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call: the static ones among the others."""
    positional, named = list(varying[0]), dict(varying[1])
    for i, one in fixed:
        if isinstance(i, str):
            named[i] = one.value
        else:
            positional.insert(i, one.value)
    return positional, named


def _in_python(
    f: Function, name: str, statics: StaticParameters, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """What the call gives where jit is disabled: numbers become tensors all the same, and so do those of the result."""
    fixed, leaves, structure = _divided(statics, arguments, keywords)
    xs = _tensors(name, leaves)
    positional, named = _joined(fixed, tree.unflatten(structure, xs))
    base = (xs[0] if xs else as_tensor(0.0)).interpreter.base
    return tree.map(
        lambda y: y if isinstance(y, Tensor) else tensor(y, backend=base), f(*positional, **named)
    )


def _recent(name: str, kind: CacheKey, xs: Sequence[Tensor], found: Executable) -> RecentCall:
    """How a call like this one, whose leaves are all tensors of a backend, is recognised."""
    assert found.run is not None
    if found.unpack is None:
        found.unpack = unpacking(kind.structure)
    gone = Donated(kind.base, name) if found.donated else None
    facts = [(x.interpreter, x.shape, x.dtype) for x in xs]
    return RecentCall(found.unpack, kind.fixed, facts, found.donated, gone, found.run, found.of)


def _key(xs: Sequence[Tensor]) -> tuple[Any, ...]:
    """What the plainest calls are known by: where their arguments are, and of which shapes and dtypes."""
    return tuple([(x.interpreter, x.shape, x.dtype) for x in xs])


def _places(what: str, argnums: Argnums, count: int) -> tuple[int, ...]:
    return places_of("jit", argnums, count, what) if argnums != () else ()


def _leaves_of_each(arguments: tuple[Any, ...], static: Sequence[int]) -> list[tuple[int, int]]:
    """For each leaf of the arguments that vary: the argument's place, and its own."""
    owners = [i for i, x in enumerate(arguments) if i not in static for _ in tree.leaves(x)]
    return [(owner, place) for place, owner in enumerate(owners)]


def _tensors(name: str, leaves: Sequence[Any]) -> list[Tensor]:
    """The leaves as tensors, numbers and arrays on the backend of the others."""
    beside = next((x for x in leaves if isinstance(x, Tensor)), None)
    xs: list[Tensor] = []
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor):
            xs.append(leaf)
            continue
        try:
            if type(leaf) in (bool, int):
                where = None if beside is None else beside.interpreter.base
                xs.append(tensor(leaf, bool_ if type(leaf) is bool else int32, backend=where))
            elif beside is None or isinstance(leaf, str) or callable(leaf):
                xs.append(as_tensor(leaf))
            else:
                xs.append(as_operand(name, leaf, _widest(leaves)))
        except ArgumentError as error:
            raise ArgumentError(
                f"jit: {name}: argument leaf {i} is a {type(leaf).__name__}, need a tensor, number or array: {error}; "
                f"name its argument in static_argnames or static_argnums to pass it as it is"
            ) from None
    return xs


def _widest(leaves: Sequence[Any]) -> Tensor:
    """The tensor whose dtype a number beside it takes."""
    tensors = [x for x in leaves if isinstance(x, Tensor)]
    return max(tensors, key=lambda x: (x.dtype.kind == "float", x.dtype.itemsize))


def _traced(
    f: Function, name: str, xs: Sequence[Tensor], kind: CacheKey, donated: Sequence[int]
) -> Executable:
    """The program of one call."""
    inner = interpreter_below([x.interpreter for x in xs] or [as_tensor(0.0).interpreter], "jit")
    found: list[tree.Structure] = []

    def flat(*tensors: Tensor) -> list[Any]:
        positional, named = _joined(kind.fixed, tree.unflatten(kind.structure, tensors))
        outputs, result = tree.flatten(f(*positional, **named))
        found.append(result)
        return outputs

    parameters = _parameters(f, kind)
    source = Source("jit", name, lambda: labels_of(kind.structure, parameters), static=_names_of(f))
    program = traced(flat, xs, inner, name, source)
    above = {v: x for v, x in program.constants.items() if not isinstance(x.interpreter, RawTensor)}
    program = program.changed(
        inputs=(*program.inputs, *above),
        constants={v: x for v, x in program.constants.items() if v not in above},
        donated=frozenset(donated),
        arguments=None if above else kind.structure,
        parameters=parameters,
    )
    types = [(v.shape, v.dtype) for v in program.outputs]
    result = tree.LEAF if found[0] == tree.LEAF else found[0]
    return Executable(program, list(above.values()), types, result, tuple(donated))


def _parameters(f: Function, kind: CacheKey) -> tuple[str, ...]:
    """What the function calls its positional arguments, but for the static ones."""
    static = {i for i, _ in kind.fixed if isinstance(i, int)}
    names = parameters_of(f, len(tree.unflatten(kind.structure, range(kind.structure.size))[0]) + len(static))
    return tuple([name for i, name in enumerate(names) if i not in static])


def _names_of(f: Function) -> frozenset[str]:
    """The names of the function's parameters; none if it does not tell."""
    try:
        return frozenset(inspect.signature(f).parameters)
    except (TypeError, ValueError):  # some that are written in C
        return frozenset()


def _keep(programs: dict[Any, Executable], key: Any, found: Executable) -> None:
    if len(programs) >= MAX_PROGRAMS and key not in programs:
        keys = [*programs]  # at once: while an iterator goes on, other threads may keep programs
        for oldest in keys[: len(keys) - MAX_PROGRAMS + 1]:
            programs.pop(oldest, None)
    programs[key] = found


def _cause(last: CacheKey | None, kind: CacheKey, found: Executable) -> str:
    """Why a function was traced, and what to do about it."""
    if found.extra:
        return "it uses tensors of an enclosing transform; pass them as arguments"
    if last is None:
        return "jit was called anew for it; call jit once, outside of the loop, and keep what it returns"
    if last.structure != kind.structure:
        return f"its arguments have the structure {kind.structure} after {last.structure}; keep to one"
    if last.fixed != kind.fixed:
        i, new = next((one for one in kind.fixed if one not in last.fixed), last.fixed[-1])
        return (
            f"static argument {i} is another value, {new.value!r:.60}, or given otherwise; if it varies, let it not be "
            f"static"
        )
    for i, (before, after) in enumerate(zip(last.types, kind.types, strict=True)):
        if before != after:
            texts = [f"{dtype.name}{list(shape)}" for shape, dtype in (after, before)]
            return f"argument leaf {i} is {texts[0]} after {texts[1]}; pad such arguments to a few shapes"
    return "its arguments are on another backend"
