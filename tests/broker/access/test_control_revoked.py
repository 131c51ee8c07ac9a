"""Rights that are lost while they are used: links and connections end, with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from broker.access.test_control import USERS, broker, control, session_of
from support.waiting import until

from qmf.broker import Broker
from qmf.broker.access.control import FileAccessControl
from qmf.messaging import aio
from qmf.messaging.exceptions import MessagingError, UnauthorizedAccess
from qmf.messaging.message import Message

ALL = "acl allow all all\n"


def change(access: FileAccessControl, text: str) -> None:
    access.file.write_text(text)
    access.reload()


async def test_receiving_links_end_with_the_right_to_consume(tmp_path: Path) -> None:
    access = control(tmp_path, ALL)
    async with broker(access) as made, session_of(made, "ann") as ann, session_of(made, "bob") as bob:
        kept, lost = await ann.receiver("q; {mode: browse}"), await bob.receiver("q; {mode: browse}")
        change(access, f"acl deny bob@QPID consume queue name=q\n{ALL}")
        with pytest.raises(UnauthorizedAccess, match="user 'bob' may not browse queue 'q': the ACL denies it"):
            await lost.fetch(5)
        sender = await bob.sender("q")  # the session goes on
        await sender.send(Message("x"), sync=True)
        assert (await kept.fetch(5)).content == "x"


async def test_sending_links_end_with_the_right_to_publish(tmp_path: Path) -> None:
    access = control(tmp_path, ALL)
    async with broker(access) as made, session_of(made, "bob") as session:
        sender = await session.sender("q")
        await sender.send(Message("x"), sync=True)
        change(access, f"acl deny bob@QPID publish exchange name=amq.default routingkey=q\n{ALL}")
        with pytest.raises(MessagingError, match="publish exchange '': the ACL denies it"):
            await sender.send(Message("x"), sync=True)


async def test_a_link_to_an_exchange_stays_while_rules_about_keys_decide_on_each_message(tmp_path: Path) -> None:
    access = control(tmp_path, ALL)
    async with broker(access) as made, session_of(made, "bob") as session:
        sender = await session.sender("amq.topic")
        change(access, "acl allow all access\nacl allow all publish exchange name=amq.topic routingkey=a\n")
        await sender.send(Message("x", subject="a"), sync=True)
        with pytest.raises(MessagingError, match="the ACL denies it"):
            await sender.send(Message("x", subject="b"), sync=True)


async def test_subscriptions_that_outlive_their_links_are_kept(tmp_path: Path) -> None:
    access = control(tmp_path, ALL)
    address = "amq.topic; {link: {name: news, durable: true}}"
    async with broker(access) as made, session_of(made, "bob") as session:
        lost = await session.receiver(address)
        change(access, f"acl deny bob@QPID bind exchange name=amq.topic\n{ALL}")
        with pytest.raises(UnauthorizedAccess, match=r"bind exchange 'amq.topic': the ACL denies it"):
            await lost.fetch(5)
        sender = await session.sender("amq.topic")
        await sender.send(Message("x", subject="a"), sync=True)
        with pytest.raises(UnauthorizedAccess, match=r"bind exchange 'amq.topic': the ACL denies it"):
            await session.receiver(address)
        change(access, ALL)
        assert (await (await session.receiver(address)).fetch(5)).content == "x"


async def test_connections_end_with_the_right_to_connect(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    access = control(tmp_path, "quota connections 1 all\n" + ALL)
    async with broker(access) as made, session_of(made, "ann"), session_of(made, "bob"):
        change(access, "quota connections 1 all\n" + ALL)  # one more would be too many, but none is
        change(access, f"acl deny bob@QPID create connection host=all\nquota connections 1 all\n{ALL}")
        await until(lambda: made.connections == 1, "the end of bob's connection")
    assert "user 'bob' may not create connection: the ACL denies it" in caplog.text


@pytest.mark.parametrize("users", [{"ann": "a"}, {"ann": "a", "bob": "!b"}], ids=["removed", "disabled"])
async def test_connections_end_with_their_users(users: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    async with Broker(port=0, users=USERS, queues=["q"]) as made, session_of(made, "ann") as ann:
        bob = aio.Connection(f"amqp://bob:b@127.0.0.1:{made.port}", reconnect=False)
        await bob.open()
        receiver = await (await bob.session()).receiver("q")
        made.set_users({**users, "ann": "another"})
        with pytest.raises(MessagingError, match="user 'bob' may not log in any more"):
            await receiver.fetch(5)
        await bob.close()
        await ann.receiver("q")  # whose password is another one
    assert "closing the connection of" in caplog.text
