"""Indexing by numpy's rules: `x[...]`, `x.oindex[...]`, `x.vindex[...]`, and `x.at[...]` for changed copies.

keys.py parses a key, and selection.py converts it to a `Selection`: movement ops (movement.py), then one gather per
group of index arrays.  updates.py uses the same selection to write values to the part, and repeats.py combines several
values for one position.  checks.py checks the values of indices, and masks.py reads the values of masks.

Indexing is stricter than numpy in two cases: indices must be in range even if the result has no elements, and the
sizes of a mask must always equal the sizes of its axes.
"""

from tensorken.arrays.indexing.checks import bounds as bounds, checked as checked, require as require
from tensorken.arrays.indexing.keys import indices_like as indices_like, s_ as s_
from tensorken.arrays.indexing.selection import (
    Outer as Outer,
    Vectorized as Vectorized,
    get as get,
    slices as slices,
)
from tensorken.arrays.indexing.updates import At as At
