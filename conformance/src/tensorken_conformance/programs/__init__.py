"""Programs: short computations as data; how they are drawn, run, judged, reduced and printed."""
