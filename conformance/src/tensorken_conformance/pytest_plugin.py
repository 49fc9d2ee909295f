"""The pytest plugin of the kit: inert unless asked."""
