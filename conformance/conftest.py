"""What pytest leaves out: the project that new backends begin with is no module of the kit."""

collect_ignore = ["src/tensorken_conformance/project"]
