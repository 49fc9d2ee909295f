"""The wgpu backend of Tensorken: programs become WGSL kernels, which run on any GPU that WebGPU reaches.

* `plugin`: the door; `adapters`: which GPUs there are;
* `device`: one of them: `memories`, `pipelines` (kernels), `groups` (kernels with memories); `limits`: what it takes;
  `failures`: what its driver says; `life`: whether it is lost; `parsing`: what makes opening it quick;
* `queue`: what waits for it, how that is handed over (`encoding`), and what is read back (`reading`);
* `backend`: the interpreter, to be wrapped in `Lazy`; `planning`: which values a program keeps, each by one kernel;
* `kernels`: the text of a kernel; `points`, `places`: where an element lies, as movement ops see it; `vectors`: and its
  neighbours, that are read and written at once;
* `wgsl`: what each op is in WGSL, for each dtype; `functions`: those that make its numbers those of IEEE 754;
* `dtypes`: which ones a device has, and how they lie in its memory; `subnormals`: whether it keeps such numbers.
"""
