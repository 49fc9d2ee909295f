"""The backends that tests are made with keep what they promise."""

from __future__ import annotations

import numpy as np
import pytest

import tensorken as tk
from core.tests.support import Strict, Strideless


@pytest.mark.parametrize("backend", [Strideless(), Strict()], ids=repr)
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (0, 2)])
def test_a_device_without_strides_permutes_every_shape(backend: Strideless, shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape, dtype=int), dtype="float32").reshape(shape)
    order = tuple(reversed(range(len(shape))))
    y = backend.permute(x, order)
    assert y.shape == x.T.shape
    assert y.tolist() == x.T.tolist()
    assert y.flags.c_contiguous
    assert not np.shares_memory(x, y) or not x.size
    assert tk.permute_dims(tk.tensor(x, backend=backend), order).tolist() == x.T.tolist()
