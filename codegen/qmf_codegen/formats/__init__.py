"""Documents made of a schema, besides Python: one module per format, each with a function from a schema to text."""
