"""Derived ops beyond those of core: convolution, systems of linear equations, matrix factorizations,
Fourier transforms, and placement.

An import of this package registers them.  As with core's derived ops, a backend may override each by a method of its
name; if it does not, the op's body runs.
"""

from __future__ import annotations

from tensorken.ops.convolution import Convolutions
from tensorken.ops.factorizations import Factorizations
from tensorken.ops.fourier import FourierTransforms
from tensorken.ops.matmul import MatrixProducts
from tensorken.ops.placement import Placements
from tensorken.ops.systems import Systems
from tensorken_core.language.raw import RawTensor

for _declarations in (Convolutions, MatrixProducts, Systems, Factorizations, FourierTransforms, Placements):
    for _name, _method in vars(_declarations).items():
        if hasattr(_method, "op"):
            setattr(RawTensor, _name, _method)  # so that backends have it, like all ops
