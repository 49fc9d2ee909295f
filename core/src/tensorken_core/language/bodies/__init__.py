"""The default bodies of the derived ops: functions of Tensors that use only the language.

They run at the level of the interpreter that expands them, and are never differentiated: derivatives come from the
ops' rules.  Infinities, NaN and signed zeros come out as in a direct implementation; an operand that `where` does not
choose may be anything.
"""
