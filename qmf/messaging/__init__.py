"""The high-level messaging API."""
