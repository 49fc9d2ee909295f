"""The PyTorch backend of Tensorken: tensors of torch, and programs as graphs of `torch.fx`."""
