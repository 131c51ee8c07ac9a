"""A broker with a store, and the application on it, served on a port."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from support.web import served, web_options

from qmf.broker import EmbeddedBroker
from qmf.connecting import BrokerTarget
from qmf.messaging import Connection, Session
from qmf.web import create_application

#: The names of the chapter.
QUEUE, TOPIC = "jms.queue.bar", "jms.topic.bar"


@contextmanager
def broker_of_the_chapter(folder: Path) -> Iterator[EmbeddedBroker]:
    """A broker with durable queue and topic of the chapter's names."""
    with EmbeddedBroker(data_dir=folder) as broker:
        with Connection.establish(broker.url, timeout=30) as connection:
            for name, kind in ((QUEUE, "queue"), (TOPIC, "topic")):
                node = f"{name}; {{create: always, node: {{type: {kind}, durable: True}}}}"
                connection.session().sender(node).close()
        yield broker


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """A broker for one test."""
    with broker_of_the_chapter(tmp_path / "broker") as broker:
        yield broker


@pytest.fixture
def session(broker: EmbeddedBroker) -> Iterator[Session]:
    """A session of another program on the same broker."""
    with Connection.establish(broker.url, timeout=30) as connection:
        yield connection.session()


@pytest.fixture
def serve(broker: EmbeddedBroker) -> Callable[..., FastAPI]:
    """Makes an application on the broker, with more options."""

    def make(**options: object) -> FastAPI:
        return create_application(web_options(target=BrokerTarget.of(broker.url), **options), pages=False)

    return make


@pytest.fixture
async def http(serve: Callable[..., FastAPI]) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the application."""
    async with served(serve()) as client:
        yield client


@pytest.fixture
async def second(serve: Callable[..., FastAPI]) -> AsyncIterator[httpx.AsyncClient]:
    """A client of another server on the same broker: as the first one after a restart, it has no memory."""
    async with served(serve()) as client:
        yield client
