"""The broker's store: definitions of nodes and persistent messages in SQLite, in the broker's data folder.

What survives the end of the process, kill -9 and loss of power included: everything whose unit was reported as stored
(`Store.submit`). A unit is on the disk whole or not at all, and units are there in the order in which they were
submitted. Nothing else is promised: what was submitted and not reported may be there or not.

The store knows neither queues nor links: messages are bytes with a place in a queue, definitions are maps of AMQP
values.
"""
