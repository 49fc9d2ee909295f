"""Answers: the output of the commands repro, explain and missing."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping
from typing import Any

from tensorken_conformance.backends.loading import load
from tensorken_conformance.law import LAWS, LEVELS
from tensorken_conformance.levels import MANDATORY_DTYPES, is_mandatory
from tensorken_conformance.operands.samples import takes
from tensorken_conformance.running.debugging import examine_again
from tensorken_conformance.running.plan import law_named
from tensorken_conformance.subject import Depth, Subject
from tensorken_core.host.registry import SELECTION
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS, Op
from tensorken_core.language.raw import RawTensor

CLAUSES = "docs/conformance.md"
"""The page with a clause for each law, whose heading is the id of the law."""


def repeated(
    case: str, backend: str | None, seed: int, options: Mapping[str, Any], depth: Depth | None = None
) -> tuple[int, str]:
    """Examine a case again; returns the exit status, and a text with the result, its script and its law.

    The arguments and errors are those of `examine_again`; without a backend it takes the default one.

    >>> status, text = repeated("values.read-back/new/bool/small", "numpy", 0, {})
    >>> status, text.splitlines()[0]
    (0, 'values.read-back/new/bool/small: passed')
    """
    name = backend or SELECTION.default_backend().name
    again = examine_again(case, name, seed, options, depth)
    result = again.result
    lines = [
        f"{result.case.id}: {result.status}",
        f"  law       {again.law.says}",
        f"  level     L{result.level} {LEVELS[result.level]}",
        f"  backend   {name}, seed {seed}, {again.depth} depth",
        f"  ran       {result.calls} ops on the backend, {result.seconds:.3g} s",
    ]
    needs = again.law.needs(result.case)
    lines += [f"  needs     {need}" for need in needs]
    if result.says:
        lines.append(f"  says      {result.says}")
    if result.ulp is not None:
        lines.append(f"  error     {result.ulp:g} ULP" + (f" at {result.worst}" if result.worst else ""))
    lines += [f"  {name:<9} {value:g}" for name, value in result.figures.items()]
    if result.script:
        lines += ["", *result.script]
    if again.traceback:
        lines += ["", again.traceback.rstrip()]
    return int(result.status in ("failed", "crashed")), "\n".join(lines)


def explained(name: str) -> str:
    """Explain a law: its sentence, its cases on the numpy backend, its clause, and its faults; or list a group of laws.

    Raises:
        PlanError: if the law is unknown.

    >>> explained("values.read-back").splitlines()[0]
    'values.read-back'
    """
    import tensorken_conformance.laws
    from tensorken_conformance.faults.fault import FAULTS

    if group := [f"{law.id}\n  {law.says}" for law in LAWS.values() if law.group == name]:
        return "\n".join(group)
    law = law_named(name)
    import tensorken_conformance.faults  # noqa: F401, importing it registers the faults

    subject = load("string" if law.symbolic else "numpy")
    cases = list(law.cases(subject))
    levels = Counter(law.level(case) for case in cases)
    ops = list(dict.fromkeys(case.op for case in cases))
    lines = [
        law.id,
        f"  {law.says}",
        f"  level   {', '.join(f'L{level} {LEVELS[level]}: {n} cases' for level, n in sorted(levels.items()))}",
        f"  about   {', '.join(ops[:12])}{f' and {len(ops) - 12} more' if len(ops) > 12 else ''}",
        f"  clause  {CLAUSES}#{law.id.replace('.', '-')}",
    ]
    if cases:
        lines.append(f"  a case  {cases[0].id}")
    aimed = [fault for fault in FAULTS.values() if fault.law == law.id]
    lines.append(f"  faults that it must find: {len(aimed)}")
    lines += [f"    {fault.id}: {fault.says}" for fault in aimed]
    return "\n".join(lines)


# ---- what a backend lacks ----------------------------------------------------------------------------------


def lacking(name: str, options: Mapping[str, Any] | None = None) -> str:
    """The missing parts of a backend: dtypes, required ops, unsupported ops, and ops that run as their bodies.

    Raises:
        BackendError: if the backend is unknown, or cannot be loaded.

    >>> print(lacking("reference").splitlines()[0][:49])
    reference has the dtypes bool, int8, int16, int32
    """
    subject = load(name, options)
    declared = subject.capabilities
    lines = [f"{name} has the dtypes {', '.join(declared.dtypes) or 'none: declare them in Capabilities'}"]
    for dtype in DTYPES:
        if dtype not in declared.dtypes:
            need = "needed for L1" if dtype in MANDATORY_DTYPES else "not needed for a level"
            lines.append(f"  lacks {dtype}: {need}")
    required, refused, derived = [], [], []
    for op in OPS.values():
        if op.per_example or op.higher_order is not None:
            continue
        if op.body is None and not subject.backend.has(op) and not _interprets(subject):
            required.append(f"{op.name}: required, for L1; a method {_signature(op)}")
        reasons = _refused(subject, op)
        for reason, dtypes in reasons.items():
            level = "L1" if any(is_mandatory(op.name, dtype) for dtype in dtypes) else "no level"
            refused.append(f"{op.name} in {', '.join(dtypes)}: {reason} (needed for {level})")
        if op.body is not None and op.method and not subject.backend.has(op):
            derived.append(op.name)
    for title, found in (
        ("missing, without which nothing goes", required),
        ("declared unsupported", refused),
    ):
        lines.append(f"{title}: {len(found) or 'nothing'}")
        lines += [f"  {line}" for line in found]
    lines.append(f"no method of its own, runs as its body in other ops: {len(derived) or 'nothing'}")
    lines += textwrap.wrap(", ".join(derived), 100, initial_indent="  ", subsequent_indent="  ")
    return "\n".join(lines)


def _interprets(subject: Subject) -> bool:
    """Whether the backend interprets all ops without methods, as `string` does."""
    return type(subject.backend).interpret is not RawTensor.interpret


def _refused(subject: Subject, op: Op) -> dict[str, list[str]]:
    """The dtypes in which the backend declares an op unsupported, grouped by the reason."""
    found: dict[str, list[str]] = {}
    for dtype in subject.dtypes():
        reason = subject.capabilities.why_not(op.name, dtype.name)
        if reason and takes(op, dtype):
            found.setdefault(reason, []).append(dtype.name)
    return found


def _signature(op: Op) -> str:
    count = "..." if op.arity is None else ", ".join("abcdef"[: op.arity])
    return f"{op.name}({', '.join([count, *op.params])})"
