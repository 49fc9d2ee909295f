"""A compiler of programs on numpy arrays to machine code, by LLVM.

Install it beside the numpy backend; `tk.jit` uses it then.
"""
