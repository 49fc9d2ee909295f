"""The default bodies of the derived ops: functions of Tensors that use only ops of the language.

A body runs on the interpreter that calls it.  It is never differentiated: derivatives come from the rules of the op.
For infinities, NaN and signed zeros it returns the results of a direct implementation.  `where` ignores the operand
that it does not select, so that operand may be infinite or NaN.
"""
