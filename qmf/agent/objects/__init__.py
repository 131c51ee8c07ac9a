"""The objects of one agent: stored by the agent, or made by providers on demand."""
