"""The kernels of each kind of op.

* `kernel`: a kernel, and those of elementwise ops and of reductions whose rows an invocation or a workgroup has;
`prologues` and `epilogues`: ops before and after special kernels;
* `contractions`: matrix products, by `tiles` or `blocks`; `tilings` chooses them, and the parts of sums;
* `shared_rows`: reductions on a GPU, with their `layouts`, `accumulations` and `workgroup_memory`; `single_pass`: those
that depend on each other, in one pass; `picks`: those that are one element; `column_sums`: rows and columns together;
* `workgroups`: reductions and scans over a workgroup, by `subgroups` where these are right;
* `cumulative`: cumulative sums; `fourier`: Fourier transforms, with their `roots`; `scatters`, by `segments` for many
indices; `sorting`, by `radix` for long rows.
"""
