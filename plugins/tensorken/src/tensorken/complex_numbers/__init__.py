"""Complex numbers: the ops of the language on pairs of real tensors."""
