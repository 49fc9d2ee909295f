"""The selftest: examine backends that are known to be faulty or correct."""
