"""Collectors: one module per kind of thing, which reads psutil and keeps the managed objects up to date."""
