"""The numpy backend of Tensorken: the language on the CPU."""
