"""What pytest leaves alone here: programs that take down what PyTorch and optax give, and so import them."""

collect_ignore_glob = ["record_*.py"]
