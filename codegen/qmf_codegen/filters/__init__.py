"""Words for templates, by subject: text in docstrings, Python expressions, types, descriptions.

Each filter is a plain function from values to text, tested by itself.
"""
