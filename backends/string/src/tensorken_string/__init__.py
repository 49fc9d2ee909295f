"""The string backend of Tensorken: a pretty-printer, and the smallest backend to copy from."""
