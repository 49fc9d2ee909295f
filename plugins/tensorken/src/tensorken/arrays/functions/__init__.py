"""The numpy-named functions over Tensor, built only from ops of the language, so they work on every backend and level.

The names are those of the array API standard, with common numpy names as aliases (`arcsin`, `absolute`, `mod`).  All
functions take tensors, numbers, nested sequences of them, and buffers.
"""
