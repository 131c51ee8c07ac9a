"""The protocols by which clients communicate with the broker, one folder each."""
