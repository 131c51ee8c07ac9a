"""Metrics of the objects on the bus, for Prometheus and OpenTelemetry."""
