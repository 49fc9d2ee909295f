"""errors.*: mistakes of users are refused in clear words, and what is refused leaves no trace."""
