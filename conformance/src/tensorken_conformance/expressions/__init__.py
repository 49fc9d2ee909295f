"""Expressions: what symbolic backends say of programs, how it reads, and the programs that they are asked about."""
