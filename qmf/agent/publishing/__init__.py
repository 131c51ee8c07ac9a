"""What an agent publishes without a request: changed objects, events, heartbeats."""
