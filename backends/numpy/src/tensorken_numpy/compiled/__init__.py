"""Programs as Python functions: a flat list of numpy calls, bound to arrays in memory that was planned once.

* `program`: what is called; `source`: the function, and what its names are bound to;
* `smallness`: which values keep size 1 along repeated axes, and are left to numpy's broadcasting;
* `schedule`: which equations run together, block by block;
* `lifetimes`, `memory`, `results`, `donations`: which memory is used again when, and which is handed out;
* `emission`: what is known of each value; `equations`, `contractions`, `blocks`: the lines of ops, alone and in groups;
* `templates`, `writing`: what an elementwise op comes down to; `layouts`, `values`: arrays that need not exist yet.

The numbers are those of the same ops one by one, bit for bit, where numpy itself gives the same bits for arrays laid
out otherwise: for all that is rounded correctly or moved.  Of exp and its kin numpy has several loops, and the last bit
may depend on where an element stands; sums and products of repeated values are taken of what is kept of them, once.
"""
