"""Attributes of managed objects: descriptors, and the accessors of statistics."""
