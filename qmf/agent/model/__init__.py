"""Base classes of generated classes, and the reading of their values."""
