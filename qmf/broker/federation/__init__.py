"""Federation: other brokers (domains), and links by which messages go from or to them.

A link is one of AMQP 1.0 that this broker asks for, on a connection of its own. Once it is granted, its ends are those
of the links that clients ask for (`qmf/broker/protocols/amqp`): messages that come are accepted when they are stored,
and those that go leave their queue when the other broker has accepted them.
"""
