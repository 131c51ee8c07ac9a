"""REST management: agents, schemas, objects, methods, events and changes over HTTP."""
