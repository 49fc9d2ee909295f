"""What laws compute with: shapes, ways of coming by an operand, and numbers that tell right from wrong."""
