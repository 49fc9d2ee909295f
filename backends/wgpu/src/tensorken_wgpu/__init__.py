"""The wgpu backend of Tensorken: programs become WGSL kernels, which run on any GPU that WebGPU reaches.

* `plugin`: the entry point; `adapters`: the GPUs of this machine;
* `device`: an opened GPU, with its `memory`, `pipelines`, `modules`, `bind_groups`, `limits` and `device_state`;
`failures`: the driver's errors in one line; `forks`: forked processes; `cffi_types`: faster opening;
* `queue`: pending kernels and copies; `encoding`: submits them; `reading`: maps buffers, those of `staging`;
* `backend`: the interpreter, to be wrapped in `Lazy`; `programs`: runs a plan; `reloading`: after a lost device;
`copies`: ops that need no kernel; `steps`: loops as programs of a step; `loops` runs them;
`loop_kernels`: loops in one kernel;
* `planning`: which values a program keeps in memory; `fusion`: which of them one kernel computes;
* `kernels`: the text of a kernel; `reductions`, `contractions` with `products`, `tiles` and `blocks`, `scatters`,
`cumulative`: special loops; `tuning`: the fastest variant, by `timing`;
* `shared_rows`: reductions on a GPU, with their `layouts`, `accumulations` and `workgroup_memory`; `single_pass`: those
that depend on each other, in one pass; `picks`: those that are one element; `column_sums`: rows and columns together;
* `workgroups`: reductions and scans over a workgroup, by `subgroups` where these are right; `tilings`: the tiles and
the parts of matrix products;
* `attention`: contractions of weights, found by `attention_patterns` and written by `attention_kernels`, with the
sums of `attention_gradients` and the elements of `attention_indices`;
* `writer`: writes the elements of values; `index_expressions`, `element_indices`: movement ops as index arithmetic;
`vectors`: several elements per access; `templates`: one text for many shapes;
* `wgsl`: each op in WGSL, for each dtype; `functions`: functions that give the numbers of IEEE 754;
* `dtypes`: the dtypes of a device, and their elements in memory; `declarations`: its capabilities, with `accuracy`,
the errors of its ops, and `subnormals`, whether it flushes them; `measurements`: files of measured numbers;
* `report`: the subcommand `tensorken gpu-report`.
"""
