"""What live screens show: objects of a class, one object, its references, events, heartbeats, classes."""
