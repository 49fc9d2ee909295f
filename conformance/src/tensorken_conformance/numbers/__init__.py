"""Numbers: the floating-point formats, and numpy's arrays in every dtype of the language."""
