"""What is true: results known without any backend."""
