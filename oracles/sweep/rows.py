"""All rows of the sweep."""

from __future__ import annotations

from oracles.sweep.arrays import ARRAYS
from oracles.sweep.creation import CREATION
from oracles.sweep.draws import DRAWS
from oracles.sweep.elementwise import ELEMENTWISE
from oracles.sweep.matrices import MATRICES
from oracles.sweep.row import Row
from oracles.sweep.special import SPECIAL

ROWS: dict[str, Row] = {**ELEMENTWISE, **ARRAYS, **MATRICES, **SPECIAL, **DRAWS, **CREATION}
