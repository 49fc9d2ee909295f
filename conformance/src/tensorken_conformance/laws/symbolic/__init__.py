"""symbolic.*: laws of backends without values, which have shapes and a text for each program."""
