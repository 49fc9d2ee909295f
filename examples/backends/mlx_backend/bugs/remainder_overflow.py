"""The remainder of the smallest int by -1 ends the process, and so does the quotient."""

import mlx.core as mx

assert mx.remainder(mx.array(-(2**31), mx.int32), mx.array(-1, mx.int32)).item() == 0
