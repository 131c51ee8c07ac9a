"""The passes from the bytes of a schema file to a model; loaded when a file is read.

`passes` drives them: bytes to XML (`document`), structure (`grammar`), single elements (`xml_attributes`, `references`,
`fields`, `signatures`), groups (`groups`), rules over a class (`rules`, `classes`), hashes (`hashing`). `problems`
collects the faults, so that one run reports all of them.
"""
