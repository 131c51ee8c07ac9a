"""Run a command with programs of others that tests can use: qpid-jms, ActiveMQ's and Artemis' clients (Java), rhea,
mqtt, stompjs (JavaScript), proton C++, DuckDB, MIT Kerberos, mosquitto's clients, gmqtt and aiomqtt (Python).

    python -m scripts.foreign python -m pytest tests/broker/foreign
    python -m scripts.foreign --only rhea python -m pytest tests/broker/foreign

The libraries of Java and JavaScript, at the versions that tests/broker/foreign names, are put in a cache folder by
Maven and npm when they are first needed; proton C++ is the system's. A DuckDB with its extension for Delta tables comes
by pip, in a folder of its own, since the extension is published for other versions than the project's. What is missing
of the system's packages (a JDK, Maven, Node.js, npm, proton's headers) is installed where this runs as root on Debian.
The library gssapi is compiled against the system's Kerberos.
The command finds what is there in QMF_TEST_JMS, QMF_TEST_ARTEMIS_CLIENTS, QMF_TEST_RHEA, QMF_TEST_WEBSOCKET_PAGE,
QMF_TEST_DUCKDB_DELTA, QMF_TEST_KERBEROS, QMF_TEST_MOSQUITTO and QMF_TEST_PYTHON_MQTT (folders)
and QMF_TEST_PROTON_CPP (the compiler's options); one that is named there already is used as it is. What cannot be had
is reported and left out.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from scripts.fetching import Unavailable, finish, install, unpacking

CACHE = Path(os.environ.get("QMF_FOREIGN_CACHE") or Path.home() / ".cache" / "qmf-foreign")
PROGRAMS = Path(__file__).resolve().parents[1] / "tests" / "broker" / "foreign"
#: The last version of DuckDB whose extensions are on PyPI.
DUCKDB = "1.5.5"
#: Clients of MQTT in Python. aiomqtt is on paho-mqtt, which tests have anyway.
PYTHON_MQTT = ("gmqtt==0.8.0", "aiomqtt==2.5.1")
#: Seconds for each step of getting a client.
LIMIT = 240


def main() -> int:
    """Run the program; returns the exit code of the command."""
    parser = argparse.ArgumentParser(description="Run a command with foreign AMQP clients for its tests.")
    parser.add_argument("--only", action="append", choices=list(CLIENTS), help="get this client, not all")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="with its arguments")
    options = parser.parse_args()
    if not options.command:
        parser.error("a command is required")
    environment = dict(os.environ)
    for name in options.only or CLIENTS:
        variable = f"QMF_TEST_{name.upper()}"
        if environment.get(variable):
            continue
        try:
            environment[variable] = CLIENTS[name]()
            print(f"{name}: {environment[variable]}", flush=True)
        except (Unavailable, OSError) as error:
            environment[f"{variable}_MISSING"] = f"{name} is not available: {error}"
            print(environment[f"{variable}_MISSING"], file=sys.stderr, flush=True)
    return subprocess.run(options.command, env=environment, check=False).returncode


def jms() -> str:
    """The folder with the jars of qpid-jms and of what it needs."""
    return jars("jms", PROGRAMS / "java" / "pom.xml")


def artemis_clients() -> str:
    """The folder with the jars of ActiveMQ's client (OpenWire) and of Artemis' own (core), and of what they need."""
    return jars("artemis-clients", PROGRAMS / "front" / "pom.xml")


def jars(name: str, description: Path) -> str:
    """The folder of the jars that a file of Maven's asks for."""
    need("javac", "default-jdk-headless")
    home = CACHE / f"{name}-{version(description)}"
    if not home.exists():
        maven = need("mvn", "maven")
        with unpacking(home) as folder:
            get = [maven, "-B", "-q", "-f", str(description), "dependency:copy-dependencies"]
            get += [f"-DoutputDirectory={folder / 'jars'}", "-DincludeScope=runtime"]
            finish(get, folder / "maven.log", os.environ, LIMIT)
            install(folder / "jars", home)
    return str(home)


def rhea() -> str:
    """The folder of the modules of rhea and of npm's mqtt, and of what they need."""
    need("node", "nodejs")
    return modules("rhea", PROGRAMS / "javascript" / "package.json")


def websocket_page() -> str:
    """The folder of the modules of the page `examples/websocket`."""
    return modules("websocket-page", PROGRAMS.parents[2] / "examples" / "websocket" / "package.json")


def modules(name: str, description: Path) -> str:
    """The folder of the modules that a file of npm's asks for."""
    home = CACHE / f"{name}-{version(description)}"
    if not home.exists():
        npm = need("npm", "npm")
        with unpacking(home) as folder:
            shutil.copy(description, folder)
            get = [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"]
            finish([*get, "--prefix", str(folder)], folder / "npm.log", os.environ, LIMIT, folder)
            install(folder / "node_modules", home)
    return str(home)


def proton_cpp() -> str:
    """The options with which programs are compiled against the system's proton C++."""
    compiler = need("c++", "g++")
    options = "-lqpid-proton-cpp"
    if not compiles(compiler, options):
        apt_install("libqpid-proton-cpp12-dev")
        if not compiles(compiler, options):
            raise Unavailable(f"c++ cannot compile a program with proton/container.hpp and {options}")
    return options


def duckdb_delta() -> str:
    """The folder of a DuckDB, and of its extension for Delta tables."""
    home = CACHE / f"duckdb-delta-{DUCKDB}"
    if not home.exists():
        with unpacking(home) as folder:
            get = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps"]
            get += [f"duckdb=={DUCKDB}", f"duckdb-extension-delta=={DUCKDB}", "--target", str(folder / "packages")]
            finish(get, folder / "pip.log", os.environ, LIMIT)
            install(folder / "packages", home)
    return str(home)


def kerberos() -> str:
    """The folder of the library gssapi; the programs of a key distribution centre are the system's."""
    for program, package in (("krb5kdc", "krb5-kdc"), ("kadmin.local", "krb5-admin-server"), ("kinit", "krb5-user")):
        need(program, package)
    need("krb5-config", "libkrb5-dev")
    home = CACHE / f"gssapi-{sys.version_info.major}.{sys.version_info.minor}"
    if not home.exists():
        need("cc", "gcc")
        with unpacking(home) as folder:
            get = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "gssapi"]
            finish([*get, "--target", str(folder / "packages")], folder / "pip.log", os.environ, LIMIT)
            install(folder / "packages", home)
    return str(home)


def mosquitto() -> str:
    """The folder of `mosquitto_pub` and `mosquitto_sub`."""
    return str(Path(need("mosquitto_pub", "mosquitto-clients")).parent)


def python_mqtt() -> str:
    """The folder of gmqtt and aiomqtt."""
    home = CACHE / "-".join(["python-mqtt", *(each.rpartition("=")[2] for each in PYTHON_MQTT)])
    if not home.exists():
        with unpacking(home) as folder:
            get = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps"]
            finish([*get, *PYTHON_MQTT, "--target", str(folder / "packages")], folder / "pip.log", os.environ, LIMIT)
            install(folder / "packages", home)
    return str(home)


def compiles(compiler: str, options: str) -> bool:
    """True if a program that uses proton C++ can be compiled."""
    text = "#include <proton/container.hpp>\nint main() { proton::container(); }\n"
    command = [compiler, "-std=c++17", "-x", "c++", "-", "-o", os.devnull, *options.split()]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=LIMIT)
    return done.returncode == 0


def version(description: Path) -> str:
    """Names what a file of dependencies asks for."""
    return hashlib.sha256(description.read_bytes()).hexdigest()[:12]


def need(program: str, package: str) -> str:
    """The path of a program; its Debian package is installed where it is missing."""
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"
    if (found := shutil.which(program, path=path)) is None:
        apt_install(package)
        found = shutil.which(program, path=path)
    if found is None:
        raise Unavailable(f"{program} is needed")
    return found


def apt_install(package: str) -> None:
    """Install a package of the system."""
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        raise Unavailable(f"it needs the package {package}: sudo apt-get install {package}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    CACHE.mkdir(parents=True, exist_ok=True)
    log = CACHE / f"apt-{package}.log"
    finish([apt, "update", "-qq"], log, environment, LIMIT)
    command = [apt, "install", "-y", "-qq", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=120", package]
    finish(command, log, environment, LIMIT)


CLIENTS: Mapping[str, Callable[[], str]] = {
    "jms": jms,
    "artemis_clients": artemis_clients,
    "rhea": rhea,
    "websocket_page": websocket_page,
    "mosquitto": mosquitto,
    "python_mqtt": python_mqtt,
    "proton_cpp": proton_cpp,
    "duckdb_delta": duckdb_delta,
    "kerberos": kerberos,
}


if __name__ == "__main__":
    sys.exit(main())
