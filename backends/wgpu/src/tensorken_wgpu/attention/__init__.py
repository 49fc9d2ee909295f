"""Attention as one kernel.

* `rewriting`: replaces contractions of weights in a program, found by `patterns`;
* `kernels`: writes a kernel, with the elements of `indices`; `gradients`: the sums that derivatives need.
"""
