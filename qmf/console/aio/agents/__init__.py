"""The agents on the bus: which are present, and when they count as gone."""
