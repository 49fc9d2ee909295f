"""values.tiles: large products of matrices come out right at each edge, of the matrices and of the batches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tensorken_conformance.case import Case
from tensorken_conformance.law import law
from tensorken_conformance.oracles import exact
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS

OP = "fused_multiply_add"

SIZES = {
    "few-rows": (16, 7, 128, 74),
    "few-columns": (16, 74, 128, 7),
    "odd": (2, 77, 83, 85),
    "thin": (9, 13, 600, 15),
    "long-few-rows": (1, 7, 4099, 38),
    "long-few-columns": (1, 38, 4099, 7),
}
"""Matrices in the batch, rows, elements of each sum, and columns: a million products each.

With as many, devices compute tiles of the result, or add up parts of long sums; the tiles divide none of these sides.
"""


def cases(subject: Subject) -> Iterator[Case]:
    """Each in one dtype, in the deep run in all that there are; none in the quick run."""
    if subject.depth == "smoke":
        return
    names = [dtype.name for dtype in subject.dtypes() if exact.takes(OPS[OP], (dtype, dtype), ((2,),))]
    preferred = sorted(names, key=("float32", "float64", "int32", "int64", "float16").index)
    for dtype in preferred if subject.depth == "deep" else preferred[:1]:
        for sizes in SIZES:
            yield Case("values.tiles", OP, dtype, sizes)


def sparse(subject: Subject, case: Case, *shape: int) -> Array:
    """Whole numbers up to 3, three of four of them zero: even float16 has any sum of their products."""
    rng = np.random.default_rng(subject.random(case).getrandbits(32))
    return np.asarray(rng.integers(-3, 4, shape) * (rng.integers(0, 4, shape) == 0), case.dtype)


@law("values.tiles", cases, level=2, needs=exact.needs_of)
def tiles(subject: Subject, case: Case) -> None:
    """Products of matrices that are large, and of many or few rows and columns, are exact where no order rounds."""
    batch, rows, inner, columns = SIZES[case.shape]
    both = sparse(subject, case, batch, inner, rows + columns)
    a, b = both[:, :, :rows].transpose(0, 2, 1), both[:, :, rows:]
    operands = [subject.tensor(x, DTYPES[case.dtype]) for x in (a[..., None], b[:, None])]
    result = subject.run(OPS[OP], operands, ((2,),))
    expected = (a.astype(np.float64) @ b.astype(np.float64)).astype(case.dtype)[:, :, None]
    exact.agree(
        subject,
        result,
        expected,
        f"{OP} of {case.dtype} {rows}x{inner} and {inner}x{columns}, {batch} of each",
    )
