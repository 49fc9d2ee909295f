"""An example: a backend over an array API library, which the conformance kit certifies."""
