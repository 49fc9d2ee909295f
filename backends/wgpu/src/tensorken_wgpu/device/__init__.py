"""An opened GPU.

* `adapters`: the GPUs of this machine, and their `limits`; `device`: an opened one, with its `device_state`;
`failures`: the driver's errors in one line; `forks`: forked processes; `cffi_types`: faster opening;
* `memory`: buffers and the parts of them; `pipelines`: compiled `modules`; `bind_groups`: the buffers of a kernel;
* `queue`: pending kernels and copies; `encoding`: submits them; `reading`: maps buffers, those of `staging`;
* `timing`: the time of kernels; `measurements`: files of measured numbers.
"""
