"""The backend keeps the laws of the language: one test for each law and op."""
