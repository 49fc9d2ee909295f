"""numpy itself, which has no derivatives: what stands below the rest."""

from __future__ import annotations

import numpy as np

from libraries.library import Library


class Numpy(Library):
    """The names of numpy by numpy."""

    name = "numpy"
    xp = np


adapter = Numpy
