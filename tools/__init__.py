"""Programs of the workshop, run by nox: none of them belongs to the library."""
