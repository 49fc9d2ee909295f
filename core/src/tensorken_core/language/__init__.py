"""The language: the table of ops, with all that is known of each, and the base class of backends."""
