"""Which kernels a program has, and how they run.

* `planning`: the kernels of a program, and the values that stay in memory; `tuning`: the fastest kernel of several;
* `programs`: runs a plan, with memory from `slots`; `reloading`: after a lost device; `copies`: ops without
a kernel;
* `loops`: loops whose step, `steps`, is a program; `loop_kernels`: loops in one kernel.
"""
