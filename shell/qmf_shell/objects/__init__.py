"""Which objects and events the user means, and what their values mean.

`lookup` finds objects by their names, `selecting` those of a class that match a condition, which `filtering` tests.
`fields` has the values of a class, `value_cells` and `columns` show them, `relations` is about references.
`schema_text` describes classes, `export` writes objects to files.
"""
