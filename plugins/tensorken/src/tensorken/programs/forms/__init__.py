"""Forms of a program: text, Python source, HTML, diagrams, and a file that another process can load."""
