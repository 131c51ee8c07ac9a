"""Following objects: keeping them up to date, agent by agent."""
