"""The fast path of jit: Python functions, each generated for one kind of call, that call the program directly.

The general path flattens the arguments, makes a cache key of them, looks up the program and builds the tree of
results; for a small program that takes ten times as long as the program itself.  The second call of a kind generates
a function for this kind, in which the structure of the arguments, the shapes and dtypes, the program and the
structure of the results are constants.  For `f({"w": w}, 0.5)` it is, without its try block:

    [v1, v2] = arguments
    if keywords: return MISS
    if type(v1) is not dict or len(v1) != 1: return MISS
    v3 = v1["w"]
    if v3.interpreter is not backend or v3._dtype is not float32 or v3._shape != shape: return MISS
    if type(v2) is not float: return MISS
    check_scalar(v2, float32)
    [v4] = run([v3.representation, backend.full((), v2, float32)])
    v5 = new(Tensor)
    v5.interpreter = backend
    v5.representation = v4
    v5._shape = result_shape
    v5._dtype = float32
    return v5

In place of the call of `run` there may be statements that the compiler of the program writes, and the wrappers of its
backend: each function that they would call takes as long as a tenth of a small program.

The checks suffice, as the program was chosen by a cache key of

* the structure of the arguments: the type and size of each container, its keys and its static fields are compared;
* the static arguments, which are compared as in the cache key;
* the shape and dtype of each leaf, which are compared; a number has the dtype that numbers of its type got before,
  beside tensors of the same dtypes, and its value is passed to the program, not a part of it; an array of another
  library is converted first, as on the general path;
* the backend: the interpreter of each tensor is compared, so values of transforms take the general path; if no leaf is
  a tensor, the default backend is compared.

Before a generated function is called, jit tests whether it is disabled, and whether observers are registered.  A call
of another kind, or whose checks raise, returns MISS without side effects; the general path then reports errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tensorken.compilation.donation import Donated
from tensorken.compilation.executable import CacheKey, Executable
from tensorken.compilation.packing import OTHER_STRUCTURE, pack, unpack
from tensorken.programs.code import Code
from tensorken.programs.execution import write_call
from tensorken_core import tree
from tensorken_core.errors import TensorkenError
from tensorken_core.language.dtypes import check_scalar
from tensorken_core.language.interpreter import Interpreter
from tensorken_core.rewriting.wrapper import DonatableArgs
from tensorken_core.tensor.tensor import Tensor
from tensorken_core.transforms.arguments import Static

MISS = object()
"""The result of a generated function for a call of another kind."""

MAX_RECENT = 32
"""The most generated functions of one jitted function that are tried."""

MAX_NODES = 10_000
"""The most nodes of the structures of arguments and results for which a function is generated."""

NUMBERS = (bool, int, float)

FastCall = Callable[[tuple[Any, ...], dict[str, Any]], Any]
"""From the positional arguments and the keywords of a call to its result, or MISS."""


def _miss(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """The first function, before one is generated."""
    return MISS


@dataclass(slots=True)
class FastCalls:
    """The generated functions of one jitted function.

    Attributes:
        first: the most recently used function.
        recent: the functions, the most recently used first; replaced as a whole, since several threads may read it.
    """

    first: FastCall = field(default=_miss)
    recent: tuple[FastCall, ...] = field(default=())

    def clear(self) -> None:
        """Drop all functions."""
        self.first, self.recent = _miss, ()

    def use(self, call: FastCall) -> None:
        """Make a function the first that is tried."""
        self.recent = (call, *[other for other in self.recent if other is not call][: MAX_RECENT - 1])
        self.first = call


def fast_call(
    name: str, cache_key: CacheKey, executable: Executable, leaves: Sequence[Any]
) -> FastCall | None:
    """The function for calls like this one; generated once for an executable and the types of the leaves.

    Args:
        name: the name of the jitted function.
        cache_key: the key of the call.
        executable: the executable for that cache key.
        leaves: the leaves of the arguments, before numbers become tensors.

    Returns:
        None for calls without a fast path: calls with captured tensors of an enclosing transform, or very many leaves.
    """
    kinds = tuple(map(type, leaves))
    call = executable.fast_calls.get(kinds)
    size = len(cache_key.structure.nodes) + len(executable.result.nodes)
    if call is None and executable.run is not None and not executable.extra and size <= MAX_NODES:
        call = executable.fast_calls[kinds] = _generated(name, cache_key, executable, kinds)
    return call


def _generated(name: str, cache_key: CacheKey, executable: Executable, kinds: Sequence[type]) -> FastCall:
    code = Code()
    backend, miss = code.constant(cache_key.base), f"return {code.constant(MISS)}"
    leaves = unpack(code, *_arguments(code, cache_key, miss), miss)
    are_tensors = [issubclass(kind, Tensor) for kind in kinds]
    interpreter = code.constant(Interpreter)  # its functions may be replaced
    if not any(are_tensors):
        code.lines.append(f"if {interpreter}.default() is not {backend}: {miss}")
    operands = []
    for x, kind, is_tensor, (shape, dtype) in zip(leaves, kinds, are_tensors, cache_key.types, strict=True):
        shape_name, dtype_name = code.constant(shape), code.constant(dtype)
        if not is_tensor:
            code.lines.append(f"if type({x}) is not {code.constant(kind)}: {miss}")
        if kind in NUMBERS:
            code.lines.append(f"{code.constant(check_scalar)}({x}, {dtype_name})")
            operands.append(f"{backend}.full((), {x}, {dtype_name})")
            continue
        if not is_tensor:
            code.lines.append(f"{x} = {interpreter}.coerce({x}, None, {backend})")
        code.lines.append(
            f"if {x}.interpreter is not {backend} or {x}._dtype is not {dtype_name} "
            f"or ({x}._shape is not {shape_name} and {x}._shape != {shape_name}): {miss}"
        )
        operands.append(f"{x}.representation")
    errors = code.constant((*OTHER_STRUCTURE, TensorkenError))
    code.lines = ["try:", *[f"    {line}" for line in code.lines], f"except {errors}: {miss}"]
    args = f"[{', '.join(operands)}]"
    if executable.donated:
        code.lines.append(f"args = {code.constant(DonatableArgs)}({args})")
        args, level = "args", code.constant(Donated(cache_key.base, name))
        for i in executable.donated:
            if are_tensors[i]:
                code.lines.append(f"{leaves[i]}.interpreter, {leaves[i]}.representation = {level}, None")
    types = executable.types
    results = code.variables(len(types))
    values = None if executable.donated else write_call(code, executable.program, cache_key.base, operands)
    if values is None:
        values = code.variables(len(types))
        code.lines.append(f"[{', '.join(values)}] = {code.constant(executable.run)}({args})")
    new, tensor = code.constant(object.__new__), code.constant(Tensor)
    for y, value, (shape, dtype) in zip(results, values, types, strict=True):
        code.lines += [
            f"{y} = {new}({tensor})",
            f"{y}.interpreter = {backend}",
            f"{y}.representation = {value}",
            f"{y}._shape = {code.constant(shape)}",
            f"{y}._dtype = {code.constant(dtype)}",
        ]
    code.lines.append(f"return {pack(code, executable.result, results)}")
    return code.function("arguments, keywords", f"call of {name}")


def _arguments(code: Code, cache_key: CacheKey, miss: str) -> tuple[Sequence[tree.Node], list[str]]:
    """Write the statements that check the static arguments; return the nodes and the names of the other arguments."""
    nodes = cache_key.structure.nodes[1:]  # the first is the pair of positional arguments and keywords
    end = _end(nodes)
    positional, named = nodes[0], nodes[end]
    assert positional is not None
    assert named is not None
    static = dict(cache_key.static)
    count = positional[2] + len([i for i in static if not isinstance(i, str)])
    keywords = [*named[1], *[i for i in static if isinstance(i, str)]]
    positions = code.variables(count)
    code.lines.append(f"[{', '.join(positions)}] = arguments")
    code.lines.append(f"if len(keywords) != {len(keywords)}: {miss}" if keywords else f"if keywords: {miss}")
    variables: dict[int | str, str] = dict(enumerate(positions))
    for keyword in keywords:
        variables[keyword] = code.variable()
        code.lines.append(f"{variables[keyword]} = keywords[{keyword!r}]")
    for i, value in static.items():
        name, expected = variables.pop(i), code.constant(value)
        code.lines.append(
            f"if {name} is not {expected}.value and {code.constant(Static)}({name}) != {expected}: {miss}"
        )
    return nodes[1:end] + nodes[end + 1 :], [*variables.values()]


def _end(nodes: Sequence[tree.Node]) -> int:
    """The number of nodes of the first tree."""
    count, pending = 0, 1
    while pending:
        node = nodes[count]
        pending += -1 if node is None else node[2] - 1
        count += 1
    return count
