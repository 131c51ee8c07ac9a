"""Run a command with the brokers that tests can use: Apache ActiveMQ Artemis and RabbitMQ.

    python -m scripts.brokers make test
    python -m scripts.brokers --only rabbitmq python -m pytest tests/messaging

Both are unpacked in a cache folder when they are first needed: Artemis from the user's Maven repositories (it needs
Java 17), RabbitMQ with Erlang from the Debian packages of the system's sources. They listen on free ports of 127.0.0.1
with what docs/brokers.md requires, keep their files in a temporary folder, and end with the command, which finds their
URLs in QMF_TEST_ARTEMIS and QMF_TEST_RABBITMQ. A broker that is named there already is used as it is. A broker that
cannot be had is reported and left out.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from scripts.fetching import DOWNLOAD, Unavailable, finish, install, last_line, unpacking

CACHE = Path(os.environ.get("QMF_BROKERS_CACHE") or Path.home() / ".cache" / "qmf-brokers")
ARTEMIS_VERSION = "2.44.0"
#: Seconds for a start, and for an end.
START, END = 120, 20


def main() -> int:
    """Run the program; returns the exit code of the command."""
    parser = argparse.ArgumentParser(description="Run a command with brokers for its tests.")
    parser.add_argument("--only", action="append", choices=list(BROKERS), help="start this broker, not all")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="with its arguments")
    options = parser.parse_args()
    if not options.command:
        parser.error("a command is required")
    environment = dict(os.environ)
    with contextlib.ExitStack() as stack:
        for name in options.only or BROKERS:
            variable = f"QMF_TEST_{name.upper()}"
            if environment.get(variable):
                continue
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"qmf-{name}-")))
            try:
                environment[variable] = stack.enter_context(BROKERS[name](folder))
                print(f"{name}: {environment[variable]}", flush=True)
            except (Unavailable, OSError) as error:
                environment[f"{variable}_MISSING"] = str(error)
                print(f"{name} is not available: {error}", file=sys.stderr, flush=True)
        return subprocess.run(options.command, env=environment, check=False).returncode


# Artemis


@contextlib.contextmanager
def artemis(folder: Path) -> Iterator[str]:
    """A running Artemis, and its URL."""
    port = free_port()
    with running(create_artemis(folder, port, "--disable-persistence"), folder / "artemis.log", os.environ) as alive:
        wait_for_amqp(port, alive)
        yield f"amqp://127.0.0.1:{port}"


def create_artemis(folder: Path, port: int, *options: str) -> list[str]:
    """Make an instance, with further options of its program; gives the command that runs it."""
    home = CACHE / f"apache-artemis-{ARTEMIS_VERSION}"
    if not home.exists():
        install_artemis(home)
    instance = folder / "broker"
    create = [str(home / "bin" / "artemis"), "create", str(instance), "--silent", "--allow-anonymous"]
    create += ["--user=guest", "--password=guest", "--host=127.0.0.1", f"--default-port={port}", "--java-memory=512M"]
    create += ["--no-autotune", "--no-web", "--no-amqp-acceptor", "--no-mqtt-acceptor", "--no-stomp-acceptor"]
    create += ["--no-hornetq-acceptor", *options]
    finish(create, folder / "create.log", os.environ, START)
    return [str(instance / "bin" / "artemis"), "run"]


def install_artemis(home: Path) -> None:
    """Unpack the distribution that Maven has, or gets, in its local repository."""
    maven = shutil.which("mvn")
    if maven is None or shutil.which("java") is None:
        raise Unavailable("mvn and java are needed to install it")
    artifact = f"org.apache.activemq:apache-artemis:{ARTEMIS_VERSION}:zip:bin"
    with unpacking(home) as folder:
        get = [maven, "-B", "-q", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"]
        finish(get, folder / "maven.log", os.environ, DOWNLOAD)
        (archive,) = folder.glob("*.zip")
        shutil.unpack_archive(archive, folder)
        (folder / home.name / "bin" / "artemis").chmod(0o755)
        install(folder / home.name, home)


# RabbitMQ

#: What docs/brokers.md asks of an administrator.
DEFINITIONS = {
    "vhosts": [{"name": "/"}],
    "users": [{"name": "guest", "password": "guest", "tags": "administrator"}],
    "permissions": [{"user": "guest", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}],
    "exchanges": [
        {"vhost": "/", "durable": True, "auto_delete": False, "internal": False, "arguments": {}, **exchange}
        for exchange in (
            {"name": "qmf.default.topic", "type": "topic"},
            {"name": "qmf.default.direct", "type": "direct"},
        )
    ],
    "policies": [
        {
            "vhost": "/",
            "name": "qmf",
            "pattern": r"^amq\.gen",
            "apply-to": "queues",
            "definition": {"expires": 60000, "max-length": 10000},
            "priority": 0,
        }
    ],
}


@contextlib.contextmanager
def rabbitmq(
    folder: Path,
    http_port: int | None = None,
    more: Sequence[str] = (),
    settings: str = "",
    terms: Callable[[int], str] | None = None,
) -> Iterator[str]:
    """A running RabbitMQ with its AMQP 1.0 plugin, and its URL.

    Args:
        folder: for its files.
        http_port: of its management over HTTP; None for none.
        more: further plugins.
        settings: lines for its configuration.
        terms: gives that in Erlang's form, for the port that it listens on.
    """
    root = CACHE / "rabbitmq"
    if not root.exists():
        install_rabbitmq(root)
    erlang = root / "usr/lib/erlang"
    (server,) = (root / "usr/lib/rabbitmq/lib").glob("rabbitmq_server-*")
    port, daemon_port = free_port(), free_port()
    (folder / "definitions.json").write_text(json.dumps(DEFINITIONS), encoding="utf-8")
    plugins = ["rabbitmq_amqp1_0", *([] if http_port is None else ["rabbitmq_management"]), *more]
    (folder / "plugins").write_text(f"[{','.join(plugins)}].\n", encoding="utf-8")
    settings += f"listeners.tcp.1 = 127.0.0.1:{port}\nload_definitions = {folder}/definitions.json\n"
    if http_port is not None:
        settings += f"management.tcp.ip = 127.0.0.1\nmanagement.tcp.port = {http_port}\n"
    (folder / "rabbitmq.conf").write_text(settings, encoding="utf-8")
    (folder / "advanced.config").write_text("[]." if terms is None else terms(port), encoding="utf-8")
    environment = {
        **os.environ,
        "PATH": f"{erlang}/bin:{os.environ['PATH']}",
        "HOME": str(folder),
        "ERL_EPMD_PORT": str(daemon_port),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODENAME": f"qmf-{port}@localhost",
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
        "RABBITMQ_ADVANCED_CONFIG_FILE": str(folder / "advanced.config"),
        "RABBITMQ_CONF_ENV_FILE": str(folder / "none.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
    }
    # Erlang's name service is started here, so that the server does not leave one behind.
    with (
        running([str(erlang / "bin/epmd")], folder / "epmd.log", environment),
        running([str(server / "sbin/rabbitmq-server")], folder / "rabbitmq.log", environment) as alive,
    ):
        wait_for_amqp(port, alive)
        yield f"amqp://127.0.0.1:{port}"


def install_rabbitmq(root: Path) -> None:
    """Unpack the packages of RabbitMQ and of the Erlang that it needs."""
    for tool in ("apt-get", "apt-cache", "dpkg"):
        if shutil.which(tool) is None:
            raise Unavailable(f"{tool} is needed to install it")
    only_dependencies = ["recommends", "suggests", "conflicts", "breaks", "replaces", "enhances"]
    switches = [f"--no-{kind}" for kind in only_dependencies]
    with unpacking(root) as folder:
        listing = folder / "packages"
        command = ["apt-cache", "depends", "--recurse", *switches, "rabbitmq-server"]
        try:
            finish(command, listing, os.environ, START)
        except Unavailable:
            if os.geteuid() != 0:
                raise
            finish(["apt-get", "update", "-qq"], folder / "apt.log", os.environ, DOWNLOAD)
            finish(command, listing, os.environ, START)
        names = {line.strip() for line in listing.read_text(encoding="utf-8").splitlines() if line[:1].isalpha()}
        wanted = sorted(name for name in names if name == "rabbitmq-server" or name.startswith("erlang-"))
        finish(["apt-get", "download", "-qq", *wanted], folder / "apt.log", os.environ, DOWNLOAD, folder)
        for package in sorted(folder.glob("*.deb")):
            finish(["dpkg", "-x", str(package), str(folder / "root")], folder / "dpkg.log", os.environ, START)
        for path in (folder / "root/usr/lib/erlang/bin").iterdir():
            if path.is_file() and not path.is_symlink() and path.read_bytes().startswith(b"#!"):
                text = path.read_text(encoding="utf-8")
                path.write_text(text.replace("=/usr/lib/erlang", f"={root}/usr/lib/erlang"), encoding="utf-8")
        install(folder / "root", root)


BROKERS: Mapping[str, Callable[[Path], contextlib.AbstractContextManager[str]]] = {
    "artemis": artemis,
    "rabbitmq": rabbitmq,
}


# Processes


@contextlib.contextmanager
def running(command: Sequence[str], log: Path, environment: Mapping[str, str]) -> Iterator[Callable[[], None]]:
    """A program in a process group of its own, which ends with the block; yields a check that it is alive."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,
        )

    def check() -> None:
        if process.poll() is not None:
            raise Unavailable(f"it ended while it started: {last_line(log)}")

    try:
        yield check
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END)


def free_port() -> int:
    """A port of 127.0.0.1 that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def wait_for_amqp(port: int, check: Callable[[], None]) -> None:
    """Return when a broker answers with the header of AMQP 1.0 or of its SASL layer."""
    end = time.monotonic() + START
    while time.monotonic() < end:
        check()
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as connection:
            connection.sendall(b"AMQP\x03\x01\x00\x00")
            if connection.recv(8) == b"AMQP\x03\x01\x00\x00":
                return
        time.sleep(0.2)
    raise Unavailable(f"nothing answers on its port within {START} s")


def end(number: int, frame: object) -> None:
    """End with the brokers, not without them."""
    del frame
    sys.exit(128 + number)


if __name__ == "__main__":
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, end)
    sys.exit(main())
