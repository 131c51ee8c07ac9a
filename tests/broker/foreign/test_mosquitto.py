"""mosquitto's clients, `mosquitto_pub` and `mosquitto_sub`, against the embedded broker."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.foreign import required
from support.waiting import WAIT_LIMIT, wait_until

from qmf.broker import EmbeddedBroker
from qmf.broker.protocols.mqtt.options import MqttOptions

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def programs() -> Path:
    return Path(required("mosquitto"))


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(mqtt=MqttOptions(port=0), data_dir=tmp_path) as made:
        yield made


def port_of(broker: EmbeddedBroker) -> str:
    return broker.mqtt_urls[0].rpartition(":")[2]


def publish(programs: Path, broker: EmbeddedBroker, *args: str, input: str | None = None) -> None:
    command = [str(programs / "mosquitto_pub"), "-p", port_of(broker), *args]
    done = subprocess.run(command, input=input, capture_output=True, text=True, check=False, timeout=WAIT_LIMIT)
    assert (done.returncode, done.stderr) == (0, "")


def subscribe(programs: Path, broker: EmbeddedBroker, count: int, *args: str) -> subprocess.Popen[str]:
    command = [str(programs / "mosquitto_sub"), "-p", port_of(broker), "-C", str(count), "-W", "60", *args]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def lines(program: subprocess.Popen[str]) -> list[str]:
    printed, _ = program.communicate(timeout=2 * WAIT_LIMIT)
    assert program.returncode == 0
    return printed.splitlines()


@pytest.mark.parametrize("version", ["311", "5"])
@pytest.mark.parametrize("qos", ["0", "1", "2"])
def test_each_qos(programs: Path, broker: EmbeddedBroker, version: str, qos: str) -> None:
    subscriber = subscribe(programs, broker, 100, "-V", version, "-q", qos, "-t", "a/#", "-F", "%t %q %p", "-i", "s")
    wait_until(lambda: broker.counters.connections == 1)
    publish(programs, broker, "-V", version, "-r", "-t", "ready", "-m", "x", "-q", "1")
    numbers = "".join(f"{number}\n" for number in range(100))
    retried_until_subscribed(programs, broker)
    publish(programs, broker, "-V", version, "-q", qos, "-t", "a/b", "-l", input=numbers)
    assert lines(subscriber) == [f"a/b {qos} {number}" for number in range(100)]


def retried_until_subscribed(programs: Path, broker: EmbeddedBroker) -> None:
    """Whoever is subscribed has a queue, which AMQP's clients can see."""
    from qmf.messaging import Connection
    from qmf.messaging.exceptions import MessagingError

    with Connection.establish(broker.url) as connection:

        def there() -> bool:
            try:
                connection.session().receiver("mqtt/s; {mode: browse}")
            except MessagingError:
                return False
            return True

        wait_until(there)


def test_a_session_retained_messages_and_a_will(programs: Path, broker: EmbeddedBroker) -> None:
    stays = ["-V", "5", "-c", "-i", "stays", "-x", "1000", "-q", "2", "-t", "kept/#"]
    publish(programs, broker, "-V", "5", "-r", "-q", "1", "-t", "kept/1", "-m", "retained")
    assert lines(subscribe(programs, broker, 1, *stays)) == ["retained"]
    publish(programs, broker, "-V", "5", "-q", "2", "-t", "kept/2", "-m", "while away")
    assert lines(subscribe(programs, broker, 1, *stays, "-F", "%t %p")) == ["kept/2 while away"]


def test_properties(programs: Path, broker: EmbeddedBroker) -> None:
    given = ["content-type", "text/plain", "response-topic", "answers", "correlation-data", "7"]
    properties = [word for pair in zip(given[::2], given[1::2], strict=True) for word in ("-D", "publish", *pair)]
    user = ["-D", "publish", "user-property", "a", "1", "-D", "publish", "user-property", "a", "2"]
    publish(programs, broker, "-V", "5", "-r", "-q", "1", "-t", "p", "-m", "x", *properties, *user)
    subscriber = subscribe(programs, broker, 1, "-V", "5", "-t", "p", "-F", "%C %R %D %P %r")
    assert lines(subscriber) == ["text/plain answers 7 a:1 a:2 1"]
