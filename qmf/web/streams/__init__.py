"""Streams over HTTP that can be resumed: numbered records, kept for a while, for any number of readers."""
