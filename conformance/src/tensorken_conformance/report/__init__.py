"""Reports: what a run has found, for people and for machines; a room for each form."""
