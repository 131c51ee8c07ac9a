"""Attributes of managed objects: descriptors, statistics accessors, and the checks that protect them."""
