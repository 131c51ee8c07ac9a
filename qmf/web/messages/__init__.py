"""REST messages: queues and topics over HTTP, by the published HornetQ REST protocol.

What survives the loss of this process, or of the broker's:

- Messages are the broker's: none is kept here that it does not have. A message that was pulled with auto-acknowledge
  was acknowledged, and confirmed by the broker, before the client got it. One that the client has to acknowledge stays
  the broker's until then.
- Pull consumers live in memory. Their ids say how to make them again (`consumer_ids`), and their links have numbers
  that are used once (`pull_protocol`): so the first post after a restart is in step, or is refused with the right link.
- Durable subscriptions are queues of the broker, found again by their names.
- The ids of messages that were created by `create-with-id` are messages of the broker as well, sent in one
  transaction with the message (`creations`).
- Push registrations that are durable are files (`push.store`).

`pull_protocol`, `consumer_ids`, `contents` and `destinations` know neither HTTP servers nor brokers;
`broker_links`, `pull_consumers`, `creations` and `push` know the messaging API; `routes` translates.
"""
