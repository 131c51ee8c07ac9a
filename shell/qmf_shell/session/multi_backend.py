"""Several brokers as one `Backend`: objects have their broker in `ObjectKey.broker`, answers are joined."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from qmf.errors import DisconnectedError, NotFoundError, QmfError
from qmf.schema import ClassKey, ClassSchema, EventSchema, Method
from qmf.views.objects import ObjectIdentity, ObjectView
from qmf_shell.session.backend import (
    AgentRecord,
    Backend,
    CallOutcome,
    ClassName,
    ConnectionStatus,
    ObjectChanges,
    ObjectFeed,
    ObjectLimit,
    QueryResult,
)

T = TypeVar("T")


class MultiBackend(Backend):
    """Several backends, used at the same time; see `Backend`."""

    def __init__(self, backends: Mapping[str, Backend]) -> None:
        """Put backends together; `backends`: by the label in the keys of their objects, which is the broker's URL."""
        self._backends = dict(backends)

    @property
    def status(self) -> ConnectionStatus:
        """The first that is not connected, or the first."""
        statuses = self.statuses
        return next((item for item in statuses if not item.connected), statuses[0])

    @property
    def statuses(self) -> Sequence[ConnectionStatus]:
        return tuple(backend.status for backend in self._backends.values())

    def agents(self) -> Sequence[AgentRecord]:
        agents = [item for backend in self._backends.values() for item in backend.agents()]
        return tuple(sorted(agents, key=lambda item: (item.name, item.broker)))

    def classes(self) -> QueryResult[ClassKey]:
        found = self._join(lambda backend: backend.classes())
        return QueryResult(tuple(dict.fromkeys(found.items)), found.failures)

    def schema(self, key: ClassKey) -> ClassSchema | EventSchema:
        error: QmfError | None = None
        for backend in self._backends.values():
            try:
                return backend.schema(key)
            except (NotFoundError, DisconnectedError) as reason:
                error = error if isinstance(error, NotFoundError) else reason
        raise error or NotFoundError("class", str(key))

    def objects(
        self,
        names: Sequence[ClassName],
        where: Sequence[object] = (),
        first: ObjectLimit | None = None,
        text: str = "",
    ) -> QueryResult[ObjectView]:
        return self._join(lambda backend: backend.objects(names, where, first, text))

    def sends_first(self, name: ClassName) -> bool:
        return all(backend.sends_first(name) for backend in self._backends.values())

    def follow(
        self, names: Sequence[ClassName], where: Sequence[object] = (), *, interval: float, recheck: float
    ) -> ObjectFeed:
        """See `Backend.follow`. A broker that is not connected yet is left out."""
        feeds: dict[str, ObjectFeed] = {}
        error: QmfError | None = None
        for label, backend in self._backends.items():
            try:
                feeds[label] = backend.follow(names, where, interval=interval, recheck=recheck)
            except QmfError as reason:
                error = reason
        if error is not None and not feeds:
            raise error
        return _JoinedFeed(feeds)

    def get(self, identity: ObjectIdentity) -> ObjectView | None:
        return self._backend_of(identity.key.broker).get(identity)

    def call(self, target: ObjectView, method: Method, arguments: Mapping[str, object]) -> Mapping[str, object]:
        return self._backend_of(target.identity.key.broker).call(target, method, arguments)

    def call_all(
        self,
        targets: Sequence[ObjectView],
        method: Method,
        arguments: Mapping[str, object],
        on_outcome: Callable[[int, CallOutcome], None],
    ) -> None:
        """See `Backend.call_all`. Calls one broker after the other."""
        for label, backend in self._backends.items():
            places = [at for at, item in enumerate(targets) if item.identity.key.broker == label]

            def on_local(number: int, outcome: CallOutcome, places: Sequence[int] = places) -> None:
                on_outcome(places[number], outcome)

            backend.call_all([targets[at] for at in places], method, arguments, on_local)

    def set_properties(self, target: ObjectView, values: Mapping[str, object]) -> None:
        self._backend_of(target.identity.key.broker).set_properties(target, values)

    def _backend_of(self, label: str) -> Backend:
        return self._backends[label]

    def _join(self, ask: Callable[[Backend], QueryResult[T]]) -> QueryResult[T]:
        """Ask all backends at the same time. A broker that does not answer is among the failures.

        Raises:
            QmfError: every broker failed.
        """
        pool = concurrent.futures.ThreadPoolExecutor(len(self._backends), thread_name_prefix="qmf-shell-ask")
        try:
            asked = {label: pool.submit(ask, backend) for label, backend in self._backends.items()}
            items: list[T] = []
            failures: dict[str, str] = {}
            errors: list[QmfError] = []
            total: int | None = 0
            for label, future in asked.items():
                try:
                    found = future.result()
                except QmfError as error:
                    errors.append(error)
                    failures[f"at {label}"] = str(error)
                    continue
                items += found.items
                failures.update(found.failures)
                total = None if total is None or found.total is None else total + found.total
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        if len(errors) == len(asked):
            raise errors[0]
        return QueryResult(items, failures, total)


class _JoinedFeed(ObjectFeed):
    """What several brokers report; see `ObjectFeed`."""

    def __init__(self, feeds: Mapping[str, ObjectFeed]) -> None:
        self._feeds = feeds

    @property
    def complete(self) -> bool:
        return all(one.complete for one in self._feeds.values())

    @property
    def failures(self) -> Mapping[str, str]:
        return {
            f"{agent} at {label}": text for label, one in self._feeds.items() for agent, text in one.failures.items()
        }

    def take(self) -> ObjectChanges:
        taken = [one.take() for one in self._feeds.values()]
        return ObjectChanges(
            [item for one in taken for item in one.records], [item for one in taken for item in one.gone]
        )

    def close(self) -> None:
        for one in self._feeds.values():
            one.close()
