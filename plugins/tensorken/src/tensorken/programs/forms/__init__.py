"""Forms of a program: text, Python source, a page, diagrams, and a file that another process loads."""
