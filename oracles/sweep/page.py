"""docs/sweep.md: which dtypes each function takes, and why it refuses the others."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from oracles.sweep.cells import Cell
from oracles.sweep.elsewhere import GROUPS
from oracles.sweep.known import read
from oracles.sweep.operands import DTYPES

FILE = Path(__file__).resolve().parents[2] / "docs" / "sweep.md"
SHORT = {
    "bfloat16": "bf16",
    "complex64": "c64",
    "complex128": "c128",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
}

HEAD = """# Functions and dtypes

Every public function of `tensorken`, `tk.linalg`, `tk.fft`, `tk.special` and `tk.random`, and the activations, losses
and clipping of `tensorken_nn`, is called with every dtype, on operands at the ends of its domain: zeros of both signs,
infinities, NaN, the largest, the smallest and subnormal numbers, the limits of integers, poles, equal elements, one
element and none. It is called eagerly, under `tk.jit` with and without machine code, under `tk.vmap`, and under one
and two `tk.grad`. The results are compared with those of numpy, scipy, mpmath or JAX, in float64 or more. A cell,
which is one such call, is

* *right*: within the documented error ([numerical accuracy](numerics.md)), with the documented dtype;
* *refused*: with an error of one line that names the function;
* *alone*: computed, where the other libraries refuse the dtype or have no such function;
* *wrong*: anything else. These are the open faults below.

`python -m oracles.sweep --write` writes this page. `nox -s "nightly(sweep)"` tries all cells and checks the page, and
`nox -s jax` tries a share.
"""


def reason_of(text: str) -> str:
    """The reason of a refusal without the dtype and the shapes of the case."""
    text = re.sub(r"\b(bool|u?int\d+|b?float\d+|complex\d+)\b", "the dtype", text, count=1)
    text = re.split(r"; |: this |, got | \(at |, not |: \d| are unknown here", text)[0]
    return re.sub(r"\(\d[\d, ]*\)|\d+", "…", text).strip()[:110]


def written(cells: Iterable[Cell]) -> str:
    """The page of these cells."""
    table: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    reasons: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    modes: dict[str, Counter[str]] = defaultdict(Counter)
    for cell in cells:
        table[cell.function][cell.dtype][cell.verdict.kind] += 1
        modes[cell.mode][cell.verdict.kind] += 1
        if cell.verdict.kind == "refused" and cell.mode == "eager":
            reasons[cell.function, cell.dtype][reason_of(cell.verdict.reason)] += 1
    legend: dict[str, str] = {}
    folded: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for function, by_dtype in table.items():
        marks = []
        for dtype in DTYPES:
            counts = by_dtype[dtype]
            if counts["wrong"]:
                marks.append("✗")
            elif counts["right"]:
                marks.append("✓")
            elif counts["refused"] and reasons[function, dtype]:
                reason = reasons[function, dtype].most_common(1)[0][0]
                marks.append(legend.setdefault(reason, str(len(legend) + 1)))
            else:
                marks.append("·" if counts else "")
        folded[tuple(marks)].append(function)
    kinds = ("right", "refused", "alone", "wrong")
    by_dtype = {d: sum((table[f][d] for f in table), Counter()) for d in DTYPES}
    total: Counter[str] = sum(by_dtype.values(), Counter())
    lines = [HEAD, "## Counts", ""]
    lines += _table(
        ["cells of", "all", *kinds],
        [
            [name, str(sum(c.values())), *[str(c[k]) for k in kinds]]
            for name, c in [("all dtypes and modes", total), *modes.items(), *by_dtype.items()]
        ],
    )
    lines += [
        "",
        "## Dtypes of each function",
        "",
        "✓: right; ✗: an open fault; ·: computed, but compared with nothing; a number: refused, with the reason below.",
        "",
    ]
    rows = [["`" + "` `".join(functions) + "`", *marks] for marks, functions in folded.items()]
    lines += _table(["functions", *[SHORT.get(d, d) for d in DTYPES]], rows)
    lines += ["", "Reasons of refusals:", "", *[f"{number}. {reason}" for reason, number in legend.items()]]
    lines += [
        "",
        "## Counts of each function",
        "",
        *_table(
            ["function", *kinds],
            [[f"`{f}`", *[str(sum(c[k] for c in d.values())) for k in kinds]] for f, d in table.items()],
        ),
    ]
    lines += [
        "",
        "## Open faults",
        "",
        *_faults(),
        "",
        "## Functions elsewhere",
        "",
        "These are not called, since they have no operands with dtypes:",
        "",
    ]
    lines += [
        f"* {reason}: {', '.join(f'`tk.{n}`' for n in names.split())}" for reason, names in GROUPS.items()
    ]
    return "\n".join(lines) + "\n"


def _faults() -> list[str]:
    known: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for (function, dtype, kind), reason in read().reasons.items():
        known[function, kind, reason].append(dtype)
    rows = [[f"`{f}`", kind, ", ".join(dtypes), reason] for (f, kind, reason), dtypes in known.items()]
    return _table(["function", "in", "dtypes", "fault"], rows) if rows else ["None."]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]
