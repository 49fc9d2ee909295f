"""Reports: what a run has found, for people and for machines."""
