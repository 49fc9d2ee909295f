"""Indexing by numpy's rules: `x[...]`, `x.oindex[...]`, `x.vindex[...]`, and `x.at[...]` for changed copies.

A key is read in keys.py and becomes a `Selection` (selection.py): movement ops (movement.py), then one gather for each
group of index arrays.  The same selection serves to write the part back (updates.py), also where places repeat
(repeats.py).  checks.py looks at the values of indices, masks.py at those of masks.

Stricter than numpy in two places: indices are in range also where the result has no elements, and the sizes of a mask
are always those of its axes.
"""

from tensorken.arrays.indexing.checks import checked as checked
from tensorken.arrays.indexing.keys import indices_beside as indices_beside, s_ as s_
from tensorken.arrays.indexing.selection import (
    Outer as Outer,
    Vectorized as Vectorized,
    get as get,
    slices as slices,
)
from tensorken.arrays.indexing.updates import At as At
