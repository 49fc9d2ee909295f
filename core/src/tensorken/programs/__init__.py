"""Programs: traced functions as small typed data, which can be read, rewritten, kept and run."""
