"""What a session with a bus knows: where data comes from, short ids, recent events, and the snapshot that Tab reads."""
