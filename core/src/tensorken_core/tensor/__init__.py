"""Tensors: values at a level, the dispatch of ops to it, and the class `Tensor` with its operators."""
