"""The string backend of Tensorken: a pretty-printer. The smallest backend, and the one to copy."""
