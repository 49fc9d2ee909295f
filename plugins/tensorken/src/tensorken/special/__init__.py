"""tk.special: the gamma function, error functions, Bessel functions and entropies, under the names of scipy.special.

They work on every backend and have derivatives of all orders.  `logsumexp`, `softmax` and `log_softmax` take an axis,
all axes by default;
the others are elementwise.  Integers and bools become float32.  Narrower floats are computed in float32.

Raises:
    DTypeError: if the function is not defined for the dtype.
    ShapeError: if the shapes of several operands do not broadcast.
    AxisError: if an axis is out of range, or named twice.

>>> import tensorken as tk
>>> print(f"{tk.special.gammaln(5.0):.4f} {tk.grad(tk.special.gammaln)(5.0):.4f}")
3.1781 1.5061
"""

import sys as _sys
import typing as _typing

from tensorken.arrays.functions.elementary import erf, erfinv
from tensorken.arrays.functions.reductions import logsumexp
from tensorken.special.bessel import i0, i0e, i1, i1e
from tensorken.special.entropies import entr, expit, kl_div, logit, rel_entr, xlog1py, xlogy
from tensorken.special.error_functions import erfc, erfcx, log_ndtr, ndtr, ndtri
from tensorken.special.gamma_functions import betaln, digamma, gammaln, polygamma, psi, zeta
from tensorken.special.incomplete import betainc, gammainc, gammaincc
from tensorken.special.softmax import log_softmax, softmax

if not _typing.TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """The error for an unknown name; for a name of another library it names the equivalent."""
        from tensorken.arrays.elsewhere.table import missing

        raise missing("module 'tensorken.special'", "tk.special", name, _sys.modules[__name__])


__all__ = [
    "betainc",
    "betaln",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "expit",
    "gammainc",
    "gammaincc",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "kl_div",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "rel_entr",
    "softmax",
    "xlog1py",
    "xlogy",
    "zeta",
]
