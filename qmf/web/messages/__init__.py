"""REST messages: queues and topics over HTTP by the published protocol."""
