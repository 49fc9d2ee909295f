"""Arrays from and for other libraries: the buffer protocol, `__array_interface__` and DLPack."""
