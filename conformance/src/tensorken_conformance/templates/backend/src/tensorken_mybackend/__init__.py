"""The mybackend backend of Tensorken."""
