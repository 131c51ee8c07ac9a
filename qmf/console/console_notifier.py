"""The callbacks of a session: which of the console's methods are called, and with what, on the callback thread."""

from __future__ import annotations

from collections.abc import Callable

from qmf import schema
from qmf.console.callback_filters import CallbackFilters
from qmf.console.callbacks import Console
from qmf.console.dispatcher import CallbackDispatcher
from qmf.console.identity import ClassKey
from qmf.console.proxies import Agent
from qmf.console.schema_views import class_kind
from qmf.errors import CallerError


class ConsoleNotifier:
    """Calls a console's methods, as far as it overrides them and the program selected what they report.

    Attributes:
        console: the console, or None.
        objects, events, heartbeats: what it receives.
        user_bindings: True when it receives only what the program binds.
        filters: what the program selected.
    """

    def __init__(
        self, console: Console | None, objects: bool, events: bool, heartbeats: bool, user_bindings: bool
    ) -> None:
        """Make a notifier; without a console it does nothing.

        Raises:
            CallerError: `user_bindings` without a console.
        """
        if user_bindings and console is None:
            raise CallerError("Session: userBindings=True needs a console, which gets what is bound")
        self.console = console
        self.objects = objects and console is not None
        self.events = events and console is not None
        self.heartbeats = heartbeats and console is not None
        self.user_bindings = user_bindings
        self.filters = CallbackFilters(objects=self.objects, events=self.events, user_bindings=user_bindings)
        self._dispatcher = CallbackDispatcher("qmf-console-callbacks")
        self._packages: set[str] = set()
        self._classes: set[ClassKey] = set()
        self._sequence = 0

    @property
    def binding_keys(self) -> list[str]:
        """The binding keys for the objects and events that are selected."""
        return list(self.filters.keys)

    def open(self) -> None:
        """Accept callbacks, again after a `close`."""
        self._dispatcher.open()

    def close(self) -> None:
        """Run the callbacks that wait, and end their thread."""
        self._dispatcher.close()

    def call(self, name: str, *args: object) -> None:
        """Call a method of the console on the callback thread, if the console overrides it."""
        callback = getattr(self.console, name, None)
        if callback is not None and getattr(callback, "__func__", None) is not getattr(Console, name):
            self._dispatcher.put(name, lambda: callback(*args))

    def call_function(self, function: Callable[..., object], **kwargs: object) -> None:
        """Call a function that the program passed, on the callback thread."""
        self._dispatcher.put("notifiable", lambda: function(**kwargs))

    def agent(self, name: str, agent: Agent) -> None:
        """Call `newAgent` or `delAgent`, if the agent is selected."""
        if self.filters.wants_agent(agent.core):
            self.call(name, agent)

    def heartbeat(self, agent: Agent, timestamp: int) -> None:
        """Call `heartbeat`, if the agent is selected."""
        if self.heartbeats and self.filters.wants_agent(agent.core):
            self.call("heartbeat", agent, timestamp)

    def package_seen(self, package: str) -> None:
        """Call `newPackage`, unless the package was seen before through another broker."""
        if package not in self._packages and self.filters.wants_package(package):
            self.call("newPackage", package)
        self._packages.add(package)

    def class_seen(self, core: schema.ClassKey) -> None:
        """Call `newClass`, unless the class was seen before through another broker."""
        key = ClassKey(core)
        if key not in self._classes and self.filters.wants_class(core):
            self.call("newClass", class_kind(key), key)
        self._classes.add(key)

    def next_sequence(self) -> int:
        """The number of the next asynchronous call."""
        self._sequence += 1
        return self._sequence
