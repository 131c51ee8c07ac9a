"""Spark's session, and what it reads: lakes and buses as the data source `qmf`. Jobs and runners are above it."""
