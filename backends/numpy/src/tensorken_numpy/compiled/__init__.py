"""Compile programs to Python functions: flat lists of numpy calls on arrays whose memory is planned once.

* `program`: the compiled program and its cache of functions; `function`: write the function for one layout of
inputs;
* `source`: the text of the function and the objects bound to its names;
* `predicates`: properties of equations; `compact_shapes`: axes that are only repeated keep size 1 and are
broadcast;
* `schedule`: which equations form a fusion group and run block by block;
* `lifetimes`, `memory`, `results`, `donations`: when memory is reused, and which arrays are returned;
* `emitter`: the array and memory of each value; `equations`, `contractions`, `blocks`: the lines of single
equations, of contractions and of fusion groups;
* `templates`, `writing`: elementwise ops as ufuncs and as lines; `layouts`, `values`: shapes and strides of arrays
that need not be allocated yet.

The results equal those of the ops run one by one, bit for bit, wherever numpy gives the same bits for other
strides: for all ops that round correctly or only move elements.  numpy has several loops for exp and similar
functions, so the last bit may depend on an element's position; sums and products of repeated values are computed
from the compact value.
"""
