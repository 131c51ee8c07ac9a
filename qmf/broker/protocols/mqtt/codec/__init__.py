"""The packets of MQTT 3.1.1 and 5 (OASIS standards) as values, and their bytes. No I/O, and no session."""
