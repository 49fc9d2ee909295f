"""`on_parts`: the declaration of an op on complex matrices, whose operands and results are their parts.

The bodies and the rules are functions of complex tensors, as those of the real ops in `tensorken/ops` are of real ones.
A cotangent of complex numbers is here the number with the cotangents of both parts: it pairs with a tangent to the
real part of its conjugate times the tangent.  So the transpose of a product with a matrix is one with its adjoint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorken.complex_numbers.tensor import ComplexTensor
from tensorken.ops.matrices import real_part
from tensorken_core.errors import ShapeError
from tensorken_core.language.declare import Method, primitive
from tensorken_core.language.op import OPS, Op, Sample
from tensorken_core.tensor.dispatch import apply
from tensorken_core.tensor.tensor import Tensor

Flags = tuple[bool, ...]
"""For each operand or result, whether it is complex."""

FORMS: dict[str, Callable[..., Any]] = {}
"""By the name of an op on real matrices, the function of complex tensors that runs its complex form."""


def complex_form(
    of: str, operands: Flags = (True,), results: Flags = (True,), samples: Sequence[Sample] | None = None
) -> Callable[[Method], Method]:
    """Declare the op on complex matrices with the facts of the op on real ones: body, rules, shapes and samples.

    Args:
        of: the name of the op on real matrices.
        operands, results: which are complex.
        samples: by default the second sample of that op, a small batch.
    """
    op = OPS[of]
    declare = on_parts(
        operands,
        results,
        shape=op.shape,
        dtype=op.dtype,
        params=op.params,
        jvp=_jvp_of(op),
        vjp=_vjp_of(op),
        body=op.body,
        min_loop_steps=op.min_loop_steps,
        adjust_samples=op.adjust_samples,
        samples=op.samples[1:2] if samples is None else samples,
    )

    def define(method: Method) -> Method:
        declared = declare(method)
        FORMS[of] = rule_of(OPS[method.__name__], operands, results)
        return declared

    return define


def on_parts(
    operands: Flags,
    results: Flags,
    *,
    shape: Callable[..., Any],
    dtype: Callable[..., Any],
    jvp: Callable[..., Any],
    vjp: Callable[..., Any],
    body: Callable[..., Any] | None,
    adjust_samples: Callable[..., Any] | None,
    samples: Sequence[Sample],
    **facts: Any,
) -> Callable[[Method], Method]:
    """Declare an op with two real operands, or results, for each complex one.

    Args:
        operands, results: which are complex.
        shape: the rule, of the operands before they become pairs.
        dtype: the rule, of all parts, and then the params.
        jvp, vjp: as `jvp_all` and `vjp_all` of an op, of complex tensors.
        body: a function of complex tensors; that of an opaque op does not get the backend.
        adjust_samples, samples: as those of an op, of the operands before they become pairs.
        facts: further attributes of `Op`.
    """
    one = len(results) == 1
    assert body is not None

    def shapes(*args: Any) -> Any:
        first, params = _firsts(args, operands)
        if tuple(args[: len(args) - len(params)]) != _doubled(first, operands):
            raise ShapeError(
                f"need real and imaginary parts of one shape, got {', '.join(map(str, args))}; broadcast first"
            )
        found = shape(*first, *params)
        return _doubled((found,) if one else found, results)

    def dtypes(*args: Any) -> Any:
        found = dtype(*args)
        return _doubled((found,) if one else found, results)

    def run_body(*args: Any) -> Any:
        xs, params = _joined(args[1:] if facts.get("opaque") else args, operands)
        ys = body(*xs, *params)
        parts = tuple(_parts((ys,) if one else ys, results))
        return parts[0] if len(parts) == 1 else parts

    def push(tangents: Any, ys: Any, xs: Any, params: Any) -> Any:
        whole = _joined(xs, operands)[0]
        found = jvp(_whole(tangents, xs, operands), _joined(ys, results)[0], whole, params)
        return tuple(_parts(found, results))

    def pull(cotangents: Any, ys: Any, xs: Any, params: Any) -> Any:
        whole = _joined(xs, operands)[0]
        found = vjp(_whole(cotangents, ys, results), _joined(ys, results)[0], whole, params)
        return tuple(_parts(found, operands))

    def adjusted(*parts: Any) -> Any:
        first, _ = _firsts(parts, operands)
        moved = first if adjust_samples is None else adjust_samples(*first)
        rest = iter(parts)
        return tuple([p for x, pair in zip(moved, operands, strict=True) for p in _moved(x, rest, pair)])

    facts |= {"results": len(results) + sum(results), "adjust_samples": adjusted}
    facts["samples"] = tuple([(_doubled(shapes, operands), params) for shapes, params in samples])
    if facts["results"] == 1:
        return primitive(
            shape=lambda *args: shapes(*args)[0],
            dtype=lambda *args: dtypes(*args)[0],
            jvp_all=push,
            vjp_all=pull,
            body=run_body,
            **facts,
        )
    return primitive(shape=shapes, dtype=dtypes, jvp_all=push, vjp_all=pull, body=run_body, **facts)


def rule_of(op: Op, operands: Flags, results: Flags) -> Callable[..., Any]:
    """The function of complex tensors that runs an op of `on_parts`."""

    def rule(*args: Any) -> Any:
        xs, params = args[: len(operands)], args[len(operands) :]
        found = apply(op, _parts(xs, operands), params)
        ys = _joined((found,) if op.results == 1 else found, results)[0]
        return ys[0] if len(ys) == 1 else tuple(ys)

    return rule


# ---- the rules of real ops -------------------------------------------------------------------------------------


def _jvp_of(op: Op) -> Callable[..., Any]:
    """The JVP of all operands; of an op with rules for each, the sum of theirs."""
    if op.jvp_all is not None:
        return op.jvp_all

    def push(tangents: Any, ys: Any, xs: Any, params: Any) -> Any:
        total = None
        for rule, t in zip(op.jvp, tangents, strict=True):
            if rule is not None and t is not None:
                term = rule(t, ys[0], *xs, *params)
                total = term if total is None else total + term
        return (total,)

    return push


def _vjp_of(op: Op) -> Callable[..., Any]:
    """The VJP of all operands."""
    if op.vjp_all is not None:
        return op.vjp_all

    def pull(cotangents: Any, ys: Any, xs: Any, params: Any) -> Any:
        return [None if rule is None else rule(cotangents[0], ys[0], *xs, *params) for rule in op.vjp]

    return pull


# ---- parts -----------------------------------------------------------------------------------------------------


def _firsts(parts: Sequence[Any], pairs: Flags) -> tuple[list[Any], Sequence[Any]]:
    """The first part of each pair, and what follows all of them."""
    found, place = [], 0
    for pair in pairs:
        found.append(parts[place])
        place += 1 + pair
    return found, parts[place:]


def _joined(parts: Sequence[Any], pairs: Flags) -> tuple[list[Any], Sequence[Any]]:
    """The complex tensors of pairs, and what follows all of them."""
    found: list[Any] = []
    place = 0
    for pair in pairs:
        found.append(ComplexTensor(parts[place], parts[place + 1]) if pair else parts[place])
        place += 1 + pair
    return found, parts[place:]


def _whole(parts: Sequence[Any], like: Sequence[Any], pairs: Flags) -> list[Any]:
    """Tangents or cotangents of pairs, each None if both parts are None.

    Args:
        like: the values.
    """
    given = [x.zeros_like() if part is None else part for part, x in zip(parts, like, strict=True)]
    known = [part is not None for part in parts]
    found = _joined(given, pairs)[0]
    place = 0
    for i, pair in enumerate(pairs):
        if not any(known[place : place + 1 + pair]):
            found[i] = None
        place += 1 + pair
    return found


def _parts(xs: Sequence[Any], pairs: Flags) -> list[Any]:
    """The parts of tensors; None has parts that are None."""
    found: list[Any] = []
    for x, pair in zip(xs, pairs, strict=True):
        if not pair:
            found.append(None if x is None else real_part(x))
        elif x is None:
            found += [None, None]
        else:
            found += [x.real, x.imag] if isinstance(x, ComplexTensor) else [x, x.zeros_like()]
    return found


def _doubled(xs: Sequence[Any], pairs: Flags) -> tuple[Any, ...]:
    return tuple([x for x, pair in zip(xs, pairs, strict=True) for x in ((x, x) if pair else (x,))])


def _moved(x: Tensor, parts: Any, pair: bool) -> list[Any]:
    """The adjusted operand in place of its first part, with its second part as it is."""
    next(parts)
    return [x, next(parts)] if pair else [x]
