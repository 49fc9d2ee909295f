"""numpy, which has no derivatives."""

from __future__ import annotations

import numpy as np

from libraries.library import Library


class Numpy(Library):
    """numpy's functions."""

    name = "numpy"
    xp = np


adapter = Numpy
