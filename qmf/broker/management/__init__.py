"""The broker's own QMF agent: its nodes and clients as managed objects and events."""
