"""Push consumers: messages of a queue or topic are sent to a URL as they come.

`registration` is what a client asks for, `store` keeps what is durable, `target` sends one message, `consumers` has a
task for each registration.
"""
