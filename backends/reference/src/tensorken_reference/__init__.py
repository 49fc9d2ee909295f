"""The reference backend of Tensorken: the definition of every op, in plain Python.

`backend.py` has the language op by op. It builds on:

* `rounding.py`: from an exact value to the nearest number of a dtype;
* `function.py`: correctly rounded functions, which are declared in `exponentials.py`, `logarithms.py`,
  `circular.py` and `power.py` and computed by the fixed-point series of `fixed.py`;
* `sums.py`, `products.py`: exact sums, products and sums of products;
* `arrays.py`, `rows.py`: operations on whole arrays, and on the elements along an axis;
* `bits.py`: the bits of floats, and neighbouring floats;
* `conversion.py`: between Python numbers, buffers and dtypes.

Select it by name, as in `TENSORKEN_BACKEND=reference`, or make one: `tensorken_reference.backend.Reference()`.
"""
