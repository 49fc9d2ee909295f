"""An example of a backend, on an array API library; the conformance kit certifies it."""
