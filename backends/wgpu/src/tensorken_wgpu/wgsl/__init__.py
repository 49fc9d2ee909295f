"""The parts of a kernel's text.

* `target`: what kernels must know of a device; `dtypes`: its dtypes, and their elements in memory;
* `ops`: each op in WGSL, for each dtype; `reductions`: how elements are combined; `functions`: functions that give the
numbers of IEEE 754;
* `writer`: writes the elements of values; `vectors`: several elements per access; `templates`: one text for many
shapes; `single_op`: programs of one op.
"""
