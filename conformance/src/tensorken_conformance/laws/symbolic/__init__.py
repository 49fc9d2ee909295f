"""symbolic.*: what a backend without values does: it knows shapes, and says in words what was asked of it."""
