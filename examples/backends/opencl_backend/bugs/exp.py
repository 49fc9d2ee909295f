"""In pocl 3.1, exp of a double overflows near 709.7827128, 5e-13 below the largest number with a finite result."""

import numpy as np
import pyopencl as cl

queue, x = cl.CommandQueue(cl.Context(cl.get_platforms()[0].get_devices()[:1])), np.array([709.7827128933806])
buffer = cl.Buffer(queue.context, cl.mem_flags.COPY_HOST_PTR, hostbuf=x)
cl.Program(queue.context, "kernel void run(global double *x) { x[0] = exp(x[0]); }").build().run(
    queue, (1,), None, buffer
)
cl.enqueue_copy(queue, x, buffer)
assert x[0] < np.inf
