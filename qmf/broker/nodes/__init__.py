"""The broker's core: exchanges, queues, and the messages that they route and keep. It knows no links."""
