"""`drain` and `spout`: the programs of the manual of the messaging API, which receive and send messages."""
