"""Detection: the recorded results of the last full selftest."""
