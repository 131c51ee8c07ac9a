"""What both forms of the messaging API are built on: connections, sessions and links, in coroutines."""
