"""Schemas of remote classes: kept by class key, and fetched from agents."""
