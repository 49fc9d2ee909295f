"""jit: a function traced once for each kind of arguments, and run as a prepared program ever after."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tensorken import tree
from tensorken.arguments import Function, check_function
from tensorken.calls import call
from tensorken.creation import as_operand, as_tensor
from tensorken.levels import ground
from tensorken.programs.execution import prepared
from tensorken.programs.program import Program
from tensorken.spec.raw import RawTensor
from tensorken.tensor import Tensor
from tensorken.tracing import traced

__all__ = ["jit"]


def jit(f: Function, *, static_argnums: int | Sequence[int] = ()) -> Callable[..., Any]:
    """The same function, traced at its first call with arguments of given shapes and dtypes; then only its ops run.

    Args:
        f: a function of pytrees of tensors and numbers.
        static_argnums: the places of arguments that f sees as they are; f is traced again for each value of them.

    >>> import tensorken as tk
    >>> loss = tk.jit(lambda w, x: ((x @ w) ** 2).sum())
    >>> w, x = tk.ones(3), tk.ones((2, 3))
    >>> loss(w, x).item(), tk.grad(loss)(w, x).tolist()
    (18.0, [12.0, 12.0, 12.0])
    """
    check_function("jit", f)
    static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    programs: dict[Any, Program] = {}
    name = getattr(f, "__name__", "function")

    @functools.wraps(f)
    def jitted(*arguments: Any, **keywords: Any) -> Any:
        fixed = tuple([(i, arguments[i]) for i in static])
        rest = [x for i, x in enumerate(arguments) if i not in static] if static else arguments
        leaves, structure = tree.flatten((tuple(rest), keywords))
        beside = next((x for x in leaves if isinstance(x, Tensor)), None)
        xs = [
            x
            if type(x) is Tensor
            else as_operand(name, x, beside)
            if beside is not None and type(x) in (bool, int, float)
            else as_tensor(x)
            for x in leaves
        ]
        base = xs[0].interpreter.base if xs else None
        key = (structure, fixed, base, tuple([(x.shape, x.dtype) for x in xs]))
        program = programs.get(key)
        extra: list[Tensor] = []
        if program is None:
            program, extra = _traced(f, name, xs, structure, fixed)
            if not extra:
                programs[key] = program
        operands = [*xs, *extra]
        if operands and all([x.interpreter is base for x in operands]) and isinstance(base, RawTensor):
            run = prepared(program, base)
            found = run([x.representation for x in operands])
            ys = [Tensor(base, y, v.shape, v.dtype) for y, v in zip(found, program.outputs, strict=True)]
        else:
            ys = call(program, operands) if operands else list(program.on(()))
        assert program.result is not None
        return tree.unflatten(program.result, ys)

    return jitted


def _traced(
    f: Function, name: str, xs: Sequence[Tensor], structure: Any, fixed: Sequence[tuple[int, Any]]
) -> tuple[Program, list[Tensor]]:
    """The program of one call, and tensors of enclosing transforms that it uses, as further inputs."""
    inner = ground([x.interpreter for x in xs] or [as_tensor(0.0).interpreter], "jit")
    found: list[Any] = []

    def flat(*tensors: Tensor) -> list[Any]:
        positional, named = tree.unflatten(structure, tensors)
        full = list(positional)
        for i, value in sorted(fixed):
            full.insert(i, value)
        outputs, result = tree.flatten(f(*full, **named))
        found.append(result)
        return outputs

    program = traced(flat, xs, inner, name)
    above = {v: x for v, x in program.constants.items() if not isinstance(x.interpreter, RawTensor)}
    return program.changed(
        inputs=(*program.inputs, *above),
        constants={v: x for v, x in program.constants.items() if v not in above},
        result=found[0],
    ), list(above.values())
