"""Mutation: what share of generated faults the conformance kit finds.

A mutant is one small change of the source of a backend, of the lowering, or of a compiler.  Mutants are drawn by a
seed, and the kit examines each in a process of its own.  A mutant that it misses is compared with the original on
random operands and programs.  Half of all mutants are held out: they are counted, and their ids are never shown.
"""
