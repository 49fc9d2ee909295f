"""jit: trace a function once for each cache key of its arguments, and run the compiled program from then on."""

from __future__ import annotations

import functools
import inspect
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, cast
from weakref import WeakKeyDictionary

from tensorken.arrays.creation import tensor
from tensorken.compilation.call_op import call
from tensorken.compilation.donation import Donated, donate
from tensorken.compilation.eager import jit_is_disabled
from tensorken.compilation.executable import CacheKey, Executable
from tensorken.compilation.fast_path import MISS, FastCalls, fast_call
from tensorken.compilation.lowered import Jitted, Lowered
from tensorken.compilation.static_arguments import StaticArguments, StaticParameters
from tensorken.programs.execution import prepared
from tensorken.programs.lost_memory import CACHES
from tensorken.programs.names import labels_of, parameters_of
from tensorken_core import tree
from tensorken_core.errors import ArgumentError, RetraceWarning
from tensorken_core.host.registry import resolve
from tensorken_core.language.observe import OBSERVERS
from tensorken_core.language.raw import RawTensor
from tensorken_core.levels.batch import Axis, named_axes
from tensorken_core.levels.trace import Source, traced
from tensorken_core.rewriting.wrapper import DonatableArgs
from tensorken_core.tensor.coercion import as_operand
from tensorken_core.tensor.level import inside_a_transform, interpreter_below
from tensorken_core.tensor.number import (
    carried,
    carrying_dtype,
    numbers_among,
    wide_float,
    with_numbers,
)
from tensorken_core.tensor.tensor import Tensor, as_tensor
from tensorken_core.transforms.arguments import (
    Argnums,
    Function,
    Static,
    argnums_of,
    check_function,
    flatten,
)
from tensorken_core.transforms.grad import TRANSFORMED, P, R

__all__ = ["jit"]

MAX_PROGRAMS = 256
"""The largest number of programs that are cached for one function; the oldest program is dropped first."""

WARN_AFTER_TRACES = 16
"""A warning is issued after this many traces by one `jit` of a function, and after each doubling of that number."""

NEW_JIT_FACTOR = 8
"""The factor on that number if each trace is the first of a new `jit`, for example for one model after another."""

_trace_counts: WeakKeyDictionary[CodeType, int] = WeakKeyDictionary()


@dataclass(slots=True, eq=False, weakref_slot=True)
class TraceCache:
    """The programs of one jitted function."""

    name: str
    code: CodeType | None
    programs: dict[CacheKey, Executable] = field(default_factory=dict)
    fast: FastCalls = field(default_factory=FastCalls)
    last_key: CacheKey | None = None
    count: int = 0

    def forget_memory(self) -> None:
        """Drop all programs: their constants may be in memory that was lost."""
        self.programs.clear()
        self.fast.clear()

    def note(self, cache_key: CacheKey, executable: Executable) -> None:
        """Count a trace, and warn if there have been many."""
        cause = _retrace_cause(self.last_key, cache_key, executable)
        count = self.count = self.count + 1  # a variable of this thread, so no number is passed over
        threshold = WARN_AFTER_TRACES
        if self.last_key is None and self.code is not None:
            count = _trace_counts[self.code] = _trace_counts.get(self.code, 0) + 1
            threshold *= NEW_JIT_FACTOR
        self.last_key = cache_key
        if count >= threshold and count & (count - 1) == 0:
            warnings.warn(
                f"jit: {self.name} has been traced {count} times, which is slow; the last time because {cause}",
                RetraceWarning,
                stacklevel=4,
            )


def jit(
    f: Callable[P, R],
    *,
    static_argnums: Argnums = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: Argnums = (),
) -> Jitted[P, R]:
    """Compile a function: its first call with given shapes and dtypes traces it; later calls run the compiled program.

    Numbers and arrays among the arguments become tensors.  Python code in f runs only while f is traced, so f must be
    a pure function of its arguments.  Derivatives and vmap of the result work to any depth, and their programs are
    cached too; the gradient of the result is compiled like the function itself.  `lower(*args)` of the result shows
    the compiled program for the arguments: `lower(*args).as_text(form)` and `lower(*args).kernels()`.

    Args:
        f: a function of pytrees of tensors and numbers.
        static_argnums: the indices of positional arguments that f gets unchanged, which must be hashable; f is traced
            for each of their values.
        static_argnames: the names of such arguments.  If only indices or only names are given, f's signature determines
            the other, so that a static argument may be passed by position or by name.
        donate_argnums: the indices of positional arguments that are not used after the call, so that results may reuse
            their memory; their tensors are invalid afterwards, even if the call fails, and using one is an error.

    Raises:
        ArgumentError: if f has no such parameters; when called, if an argument is not a tensor, number or array and
            not static.
        ConcretizationError: when called, if f needs a value of a tensor, for example for `if x > 0`; `tk.disable_jit`
            runs f on values, for debugging.

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
    given = f
    statics = StaticParameters.of(f, static_argnums, static_argnames)
    has_options = bool(statics.argnums or statics.names or donate_argnums)
    if not has_options:
        f = _before_jit(f)
    name = getattr(f, "__name__", "function")
    cache = TraceCache(name, getattr(inspect.unwrap(f), "__code__", None))
    CACHES.add(cache)
    fast = cache.fast

    @functools.wraps(given)
    def jitted(*arguments: Any, **keywords: Any) -> Any:
        if jit_is_disabled():
            return _in_python(f, name, statics, arguments, keywords)
        if not OBSERVERS:
            result = fast.first(arguments, keywords)
            if result is not MISS:
                return result
            for call_fast in fast.recent[1:]:
                result = call_fast(arguments, keywords)
                if result is not MISS:
                    fast.use(call_fast)
                    return result
        return _call(f, cache, statics, donate_argnums, arguments, keywords)

    def lower(*arguments: Any, **keywords: Any) -> Lowered:
        """The program for these arguments; see `tensorken.compilation.lowered.Lowered`."""
        return _lowered(f, cache, statics, donate_argnums, arguments, keywords)

    transformed_jits: dict[Any, Callable[..., Any]] = {}

    def once(key: Any, transform: Callable[[Function], Function]) -> Callable[..., Any]:
        if key not in transformed_jits:
            transformed = transform(f)
            transformed.__name__ = f"{key[0]} of {name}"
            transformed_jits[key] = jit(
                transformed, static_argnums=statics.argnums, static_argnames=[*statics.names]
            )
        return transformed_jits[key]

    jitted.__dict__["lower"] = lower  # derivatives and batches of the function do not copy attributes
    jitted.__dict__[TRANSFORMED] = (weakref.ref(jitted), once)
    if not has_options:
        jitted.__dict__[_PLAIN] = (weakref.ref(jitted), f)
    return cast(Jitted[P, R], jitted)


_PLAIN = "__tensorken_before_jit__"


def _before_jit(f: Callable[P, R]) -> Callable[P, R]:
    """The function of a jitted one without options: a program within a program has no use; else f itself."""
    of, before = getattr(f, "__dict__", {}).get(_PLAIN, (None, f))
    return before if of is not None and of() is f else f  # wrappers copy attributes


def _call(
    f: Function,
    cache: TraceCache,
    statics: StaticParameters,
    donate_argnums: Argnums,
    arguments: tuple[Any, ...],
    keywords: dict[str, Any],
) -> Any:
    """A call that the fast path does not take."""
    executable, cache_key, is_new, xs, leaves = _executable(
        f, cache, statics, donate_argnums, arguments, keywords
    )
    name, base = cache.name, cache_key.base
    operands = [*xs, *executable.extra]
    opaque = executable.program.opaque
    on_backend = isinstance(base, RawTensor) and all([x.interpreter is base for x in operands])
    if (on_backend or not operands) and not (opaque and inside_a_transform()):
        backend: Any = base if on_backend else executable.program.backend
        run = executable.run
        if OBSERVERS:
            run = prepared(executable.program, backend, is_checked=True)
        elif run is None:
            run = executable.run = prepared(executable.program, backend, is_checked=True)
        # Similar calls are likely to follow, but the fast path does not look for a trace that must record opaque ops.
        if not is_new and not opaque and not cache_key.axes:
            fast = fast_call(name, cache_key, executable, leaves)
            if fast is not None:
                cache.fast.use(fast)
        args = DonatableArgs([x.representation for x in operands])
        if executable.donated:
            donate([xs[i] for i in executable.donated if xs[i] is leaves[i]], Donated(base, name))
        return executable.result_of(run(args), backend)
    return tree.unflatten(executable.result, call(executable.program, operands))


def _executable(
    f: Function,
    cache: TraceCache,
    statics: StaticParameters,
    donate_argnums: Argnums,
    arguments: tuple[Any, ...],
    keywords: dict[str, Any],
) -> tuple[Executable, CacheKey, bool, list[Tensor], list[Any]]:
    """The executable for these arguments, its key, whether it is new, and the leaves as tensors and unconverted."""
    name = cache.name
    donated = _argnums("donate_argnums", donate_argnums, len(arguments))
    static, leaves, structure = _split_arguments(statics, arguments, keywords)
    static_indices = [i for i, _ in static if isinstance(i, int)]
    xs = _tensors(name, leaves)
    base = (xs[0] if xs else as_tensor(0.0)).interpreter.base
    types = tuple([(x.shape, x.dtype) for x in xs])
    axes: tuple[Axis, ...] = ()
    if inside_a_transform():
        axes = tuple(named_axes(interpreter_below([x.interpreter for x in xs], "jit")).values())
    cache_key = CacheKey(structure, static, base, types, axes, numbers_among(leaves))
    try:
        executable = cache.programs.get(cache_key)
    except TypeError as error:
        raise ArgumentError(
            f"jit: {name}: a static argument cannot be hashed: {error}; pass it as an array"
        ) from None
    is_new = executable is None
    if executable is None:
        donated_leaves = (
            [leaf_index for i, leaf_index in _leaves_of_each(arguments, static_indices) if i in donated]
            if donated
            else []
        )
        executable = _traced(f, name, xs, cache_key, donated_leaves)
        cache.note(cache_key, executable)
        if not executable.extra:  # captured tensors are valid only within their transform
            _store(cache.programs, cache_key, executable)
    return executable, cache_key, is_new, xs, leaves


def _lowered(
    f: Function,
    cache: TraceCache,
    statics: StaticParameters,
    donate_argnums: Argnums,
    arguments: tuple[Any, ...],
    keywords: dict[str, Any],
) -> Lowered:
    executable, cache_key, _, xs, _ = _executable(f, cache, statics, donate_argnums, arguments, keywords)
    base = cache_key.base
    on_backend = isinstance(base, RawTensor) and bool(xs)
    return Lowered(executable.program, base if on_backend else executable.program.backend)


def _split_arguments(
    statics: StaticParameters, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[StaticArguments, list[Any], tree.Structure]:
    """The static arguments by index or name, and the leaves and the structure of the other arguments."""
    if not statics.argnums and not statics.names:
        return (), *flatten((arguments, keywords))
    count = len(arguments)
    argnums = [i for i in statics.argnums if not statics.optional or i < count]
    argnums_or_int = argnums[0] if len(argnums) == 1 else tuple(argnums)
    indices = set(_argnums("static_argnums", argnums_or_int, count) if argnums else ())
    named = sorted(statics.names.intersection(keywords))
    static: StaticArguments = (
        *[(i, Static(arguments[i])) for i in sorted(indices)],
        *[(n, Static(keywords[n])) for n in named],
    )
    varying = tuple([x for i, x in enumerate(arguments) if i not in indices])
    rest = {n: x for n, x in keywords.items() if n not in named}
    return static, *flatten((varying, rest))


def _joined_arguments(static: StaticArguments, varying: Any) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call, static ones included."""
    positional, named = list(varying[0]), dict(varying[1])
    for i, argument in static:
        if isinstance(i, str):
            named[i] = argument.value
        else:
            positional.insert(i, argument.value)
    return positional, named


def _in_python(
    f: Function, name: str, statics: StaticParameters, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """The result while jit is disabled; numbers become tensors as usual, in arguments and results."""
    static, leaves, structure = _split_arguments(statics, arguments, keywords)
    xs = with_numbers(_tensors(name, leaves), numbers_among(leaves))
    positional, named = _joined_arguments(static, tree.unflatten(structure, xs))
    base = (xs[0] if xs else as_tensor(0.0)).interpreter.base
    return tree.map(
        lambda y: as_tensor(y) if isinstance(y, Tensor) else tensor(y, backend=base), f(*positional, **named)
    )


def _argnums(what: str, argnums: Argnums, count: int) -> tuple[int, ...]:
    return argnums_of("jit", argnums, count, what) if argnums != () else ()


def _leaves_of_each(arguments: tuple[Any, ...], static: Sequence[int]) -> list[tuple[int, int]]:
    """For each leaf of the arguments that are not static, the indices of the argument and of the leaf."""
    owners = [i for i, x in enumerate(arguments) if i not in static for _ in tree.leaves(x)]
    return [(owner, leaf_index) for leaf_index, owner in enumerate(owners)]


def _tensors(name: str, leaves: Sequence[Any]) -> list[Tensor]:
    """The leaves as tensors; numbers and arrays are moved to the backend of the tensors."""
    first_tensor = next((x for x in leaves if isinstance(x, Tensor)), None)
    xs: list[Tensor] = []
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor):
            xs.append(carried(leaf))
            continue
        try:
            if type(leaf) in (bool, int, float):
                backend = resolve(None) if first_tensor is None else first_tensor.interpreter.base
                dtype = carrying_dtype(leaf, wide_float(backend))  # it may meet a float64 of a closure
                xs.append(tensor(leaf, dtype, backend=backend))
            elif first_tensor is None or isinstance(leaf, str) or callable(leaf):
                xs.append(as_tensor(leaf))
            else:
                xs.append(as_operand(name, leaf, _widest_tensor(leaves)))
        except ArgumentError as error:
            raise ArgumentError(
                f"jit: {name}: argument leaf {i} is a {type(leaf).__name__}, need a tensor, number or array: {error}; "
                f"name its argument in static_argnames or static_argnums to pass it unchanged"
            ) from None
    return xs


def _widest_tensor(leaves: Sequence[Any]) -> Tensor:
    """The tensor whose dtype numbers take."""
    tensors = [x for x in leaves if isinstance(x, Tensor)]
    return max(tensors, key=lambda x: (x.dtype.kind == "float", x.dtype.itemsize))


def _traced(
    f: Function, name: str, xs: Sequence[Tensor], cache_key: CacheKey, donated: Sequence[int]
) -> Executable:
    """The program of one call."""
    inner = interpreter_below([x.interpreter for x in xs], "jit")
    structures: list[tree.Structure] = []

    def flat(*tensors: Tensor) -> list[Any]:
        values = with_numbers(tensors, cache_key.numbers)
        positional, named = _joined_arguments(cache_key.static, tree.unflatten(cache_key.structure, values))
        outputs, result = tree.flatten(f(*positional, **named))
        structures.append(result)
        # a result that is a number has its default dtype
        return [as_tensor(y) if isinstance(y, Tensor) else y for y in outputs]

    parameters = _parameters(f, cache_key)
    source = Source("jit", name, lambda: labels_of(cache_key.structure, parameters), static=_names_of(f))
    program = traced(flat, xs, inner, name, source)
    captured = {v: x for v, x in program.constants.items() if not isinstance(x.interpreter, RawTensor)}
    program = program.changed(
        inputs=(*program.inputs, *captured),
        constants={v: x for v, x in program.constants.items() if v not in captured},
        donated=frozenset(donated),
        arguments=None if captured else cache_key.structure,
        parameters=parameters,
    )
    types = [(v.shape, v.dtype) for v in program.outputs]
    result = tree.LEAF if structures[0] == tree.LEAF else structures[0]
    return Executable(program, list(captured.values()), types, result, tuple(donated))


def _parameters(f: Function, cache_key: CacheKey) -> tuple[str, ...]:
    """The names of the positional arguments that are not static."""
    static = {i for i, _ in cache_key.static if isinstance(i, int)}
    names = parameters_of(
        f, len(tree.unflatten(cache_key.structure, range(cache_key.structure.size))[0]) + len(static)
    )
    return tuple([name for i, name in enumerate(names) if i not in static])


def _names_of(f: Function) -> frozenset[str]:
    """The names of the function's parameters; none if it has no signature."""
    try:
        return frozenset(inspect.signature(f).parameters)
    except (TypeError, ValueError):  # some functions written in C
        return frozenset()


def _store(programs: dict[CacheKey, Executable], key: CacheKey, executable: Executable) -> None:
    if len(programs) >= MAX_PROGRAMS and key not in programs:
        keys = [*programs]  # a copy, since other threads may add programs meanwhile
        for oldest in keys[: len(keys) - MAX_PROGRAMS + 1]:
            programs.pop(oldest, None)
    programs[key] = executable


def _retrace_cause(last_key: CacheKey | None, cache_key: CacheKey, executable: Executable) -> str:
    """Why a function was traced, and how to avoid it."""
    if executable.extra:
        return "it uses tensors of an enclosing transform; pass them as arguments"
    if last_key is None:
        return "jit was called again for it; call jit once, outside of the loop, and keep the function that it returns"
    if last_key.structure != cache_key.structure:
        return (
            f"its arguments have the structure {cache_key.structure} after {last_key.structure}; keep to one"
        )
    if last_key.static != cache_key.static:
        changed = [entry for entry in cache_key.static if entry not in last_key.static]
        i, new = (changed or last_key.static)[0]
        return (
            f"static argument {i} has another value, {new.value!r:.60}, or is passed in another way; do not make "
            f"arguments static that vary"
        )
    if last_key.axes != cache_key.axes:
        return "the enclosing transforms have other named axes, or axes of other sizes; keep to a few"
    for i, (before, after) in enumerate(zip(last_key.types, cache_key.types, strict=True)):
        if before != after:
            texts = [f"{dtype.name}{list(shape)}" for shape, dtype in (after, before)]
            return f"argument leaf {i} is {texts[0]} after {texts[1]}; pad such arguments to a few shapes"
    return "its arguments are on another backend"
