"""The reference backend of Tensorken: what every op means, in plain Python.

`backend.py` is the language op by op. Under it:

* `rounding.py`: from an exact value to the nearest number of a dtype;
* `function.py`: correctly rounded functions; they are rows in `exponentials.py`, `logarithms.py`,
  `circular.py` and `power.py`, and computed by the fixed-point series of `fixed.py`;
* `sums.py`: exact sums and sums of products;
* `arrays.py`, `rows.py`: what ops do to whole arrays, and to the elements along an axis;
* `conversion.py`: between Python numbers, buffers and dtypes.

It is chosen by name, as in `TENSORKEN_BACKEND=reference`, or made: `tensorken_reference.backend.Reference()`.
"""
