"""`jit`: functions that are traced once and run as compiled programs."""
