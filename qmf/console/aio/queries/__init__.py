"""Queries for objects, and the filters in them."""
