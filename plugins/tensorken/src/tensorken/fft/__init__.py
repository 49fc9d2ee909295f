"""tk.fft: discrete Fourier transforms, under the names of the array API and numpy.

Any length is transformed in time n log n, primes too.  float32 and complex64 stay in 32 bits, and integers, bools and
float16 become float32.  Everything can be differentiated to any order, in both modes.

Each transform takes `norm`: "backward" divides the inverse transform by n, "forward" the other one, and "ortho" divides
both by sqrt(n).

Raises:
    DTypeError: if the operand of a transform of real numbers is complex.
    ShapeError: if there is nothing to transform: a length below 1.
    AxisError: if an axis is out of range, or named twice.
    ArgumentError: if `norm` is another word, or the numbers of sizes and axes differ.

>>> import tensorken as tk
>>> print(tk.fft.fft([0.0, 1.0, 0.0, 0.0]))
[ 1.+0.j  0.-1.j -1.+0.j  0.+1.j]
"""

from tensorken.fft.frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from tensorken.fft.of_real import hfft, ihfft, irfft, irfft2, irfftn, rfft, rfft2, rfftn
from tensorken.fft.transforms import fft, fft2, fftn, ifft, ifft2, ifftn

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
