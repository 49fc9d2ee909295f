"""errors.*: mistakes of users are refused with clear messages, and a refused call has no effect."""
