"""Kernels: the lowering of programs to loop nests, for every compiler.

`lowering.lower` divides a program into fusion groups: values that one kernel computes.  `nests.Nest` goes through the
loops of a kernel, and `elements.ElementWalk` through the computation of an element, down to the values in memory.
A target implements the abstract methods of these classes.  `reference` is a target that computes in Python.
"""
