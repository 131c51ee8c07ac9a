"""Documents generated from a schema: one module per format, each with a function from a schema to text."""
