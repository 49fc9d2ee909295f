"""Files that pytest does not collect: the recording programs, which import PyTorch and optax."""

collect_ignore_glob = ["record_*.py"]
