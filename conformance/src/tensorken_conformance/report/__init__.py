"""Reports: the results of a run as text, HTML, Markdown, JSON, JUnit XML and badges."""
