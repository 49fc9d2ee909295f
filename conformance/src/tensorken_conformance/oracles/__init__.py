"""What is true: results known without any backend, a room for each family of laws."""
