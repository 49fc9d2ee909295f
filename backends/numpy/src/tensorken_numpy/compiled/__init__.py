"""Programs as Python functions: a flat list of numpy calls, bound to arrays in memory that was planned once.

* `smallness`: which values keep size 1 along repeated axes;
* `schedule`: which equations run together, block by block;
* `lifetimes`, `memory`: which memory is used again when;
* `emission`, `blocks`, `contractions`: the lines of the function; `templates`: what an elementwise op comes down to;
* `source`: the function and what its names are bound to;
* `program`: what is called.
"""
