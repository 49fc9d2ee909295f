"""All cells, tried by several processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import jax

from oracles.sweep.cells import Cell, cells
from oracles.sweep.functions import public_functions, row_of

CHUNK = 8  # functions in one task of a process


def cells_of(first: int, dtypes: Sequence[str], modes: Sequence[str], select: str) -> list[Cell]:
    """The cells of some functions, from a number on."""
    jax.clear_caches()  # it keeps the programs of every shape
    found: list[Cell] = []
    for function in public_functions()[first : first + CHUNK]:
        named = row_of(function)
        if named and select in named[0]:
            for dtype in dtypes:
                found += cells(function, *named, dtype, modes)
    return found


def every_cell(
    dtypes: Sequence[str], modes: Sequence[str], select: str, processes: int | None
) -> Iterator[Cell]:
    """All cells of the chosen functions, dtypes and modes, by several processes, in the order of the functions."""
    starts = range(0, len(public_functions()), CHUNK)
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for future in [pool.submit(cells_of, start, dtypes, modes, select) for start in starts]:
            yield from future.result()
