"""Development tools, run by nox; they are not part of the library."""
