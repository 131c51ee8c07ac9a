"""The Python package of a schema: names, the values that templates show, templates, and the formatter."""
