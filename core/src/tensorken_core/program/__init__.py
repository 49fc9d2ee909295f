"""Programs: traced functions as data, equations in static single assignment form."""
