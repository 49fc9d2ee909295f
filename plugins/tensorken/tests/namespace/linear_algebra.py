"""Functions of tk.linalg: exponentials, and maps between tensors."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from plugins.tensorken.tests.namespace.laws import call, floats, law

RNG = np.random.default_rng(0)

OF_LINALG = {
    "expm": law(
        call(RNG.standard_normal((3, 3))),
        call(RNG.standard_normal((2, 2, 4, 4)) * 3.0),
        call(np.array([[0.0, 20.0], [-20.0, 0.0]])),
        call((RNG.standard_normal((3, 3)) / 2).astype("float32")),
        call(np.zeros((2, 3, 3))),
        call(np.zeros((0, 2, 2))),
        numpy=scipy.linalg.expm,
        smooth=True,
    ),
    "tensorinv": law(
        call(RNG.standard_normal((2, 3, 6))),
        call(RNG.standard_normal((6, 3, 2)), ind=1),
        call(RNG.standard_normal((2, 1, 2)).astype("float32")),
        smooth=True,
        tolerance=10.0,
    ),
    "tensorsolve": law(
        call(RNG.standard_normal((2, 3, 6)), floats(2, 3)),
        call(RNG.standard_normal((6, 3, 2)), floats(6)),
        call(RNG.standard_normal((3, 6, 2)), floats(6), axes=(0, 2)),
        smooth=True,
        tolerance=10.0,
    ),
}
