"""The wgpu backend of Tensorken: programs become WGSL kernels, which run on any GPU that WebGPU reaches.

Each folder imports the ones after it:

* `plugin`: the entry point; `backend`: the interpreter, to be wrapped in `Lazy`; `report`: `tensorken gpu-report`;
* `declarations`: the capabilities of a device, with `accuracy`, the errors of its ops, and `subnormals`, whether it
takes subnormal numbers for zeros;
* `execution`: which kernels a program has, and how they run;
* `attention`: attention as one kernel;
* `kernels`: the kernels of each kind of op;
* `wgsl`: the parts of a kernel's text;
* `device`: an opened GPU.
"""
