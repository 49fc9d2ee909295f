"""Kernels: the lowering of programs to loop nests, for every compiler.

`lowering.lower` divides a program into fusion groups: values that one kernel computes.  `nests.Nest` goes through the
loops of a kernel, and `elements.ElementWalk` through the computation of an element, down to the values in memory.
What a target is asked for on the way is abstract in these classes.  `reference` is a target that computes in Python.
"""
