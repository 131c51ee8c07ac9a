"""Generated code for the schemas that we ship: one package per file in `schemas/`, made by `qmf-codegen`.

Nothing in here is written by hand; change the schema and generate again.
"""
