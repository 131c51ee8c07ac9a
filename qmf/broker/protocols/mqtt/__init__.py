"""MQTT 3.1.1 and 5 for the clients of a broker."""
