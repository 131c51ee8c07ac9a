"""What the agent knows of a managed class: its fields, their checks, and where objects hold their values."""
