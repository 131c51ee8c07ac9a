"""Links to the coordinator, on which a client declares and discharges its transactions (AMQP 1.0, part 4)."""

from __future__ import annotations

from collections.abc import Hashable

from qmf.broker.nodes.observed_clients import TransactionCounts
from qmf.broker.protocols.amqp.conditions import outcome_of
from qmf.broker.refusal import Refusal
from qmf.broker.transactions.coordinator import MAX_TRANSACTIONS, Coordinator, TransactionFailed
from qmf.bus.engine.events import Delivery
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import Outcome
from qmf.bus.transport import AmqpTransport
from qmf.codec.message import decode_message
from qmf.codec.types import Described
from qmf.errors import DecodeError

#: The target of such a link as management shows it, which is qpidd's name for it.
COORDINATOR = "txn-ctrl"

_DECLARE = frozenset({0x31, "amqp:declare:list"})
_DISCHARGE = frozenset({0x32, "amqp:discharge:list"})


class CoordinatorLink:
    """A link to the coordinator; a `ClientLink` for observers.

    Attributes:
        transfers: requests received.
    """

    source, target = "", COORDINATOR  #: see `ClientLink`
    queue = exchange = None  #: see `ClientLink`
    browsing = presettled = False  #: see `ClientLink`

    def __init__(self, transport: AmqpTransport, link: Link, coordinator: Coordinator) -> None:
        self.transfers = 0
        self.transactions = TransactionCounts()
        self._transport = transport
        self._link = link
        self._coordinator = coordinator
        #: The open transactions that were declared on the link; some may have been discharged on another.
        self._owned: set[bytes] = set()

    @property
    def name(self) -> str:
        return self._link.name

    @property
    def session(self) -> Hashable:
        return self._link.session_id

    def count_unsettled(self) -> tuple[int, int]:
        """See `ClientLink`: none, the client only sends."""
        return 0, 0

    def begin(self) -> None:
        """The link is granted: give credit."""
        self._transport.engine.links.add_credit(self._link, MAX_TRANSACTIONS)

    def end(self) -> None:
        """The link is gone."""
        self._coordinator.roll_back(self._owned)

    def on_delivery(self, event: Delivery) -> None:
        """A request."""
        self.transfers += 1
        try:
            self._carry_out(event)
        except TransactionFailed as error:
            self._settle(event, *outcome_of(error.refusal))
        except DecodeError as error:
            self._settle(event, Outcome.REJECTED, "amqp:decode-error", str(error))
        self._transport.engine.links.add_credit(self._link, 1)
        self._transport.flush_soon()

    def _carry_out(self, event: Delivery) -> None:
        body = decode_message(event.data, text=False).body
        descriptor, fields = (body.descriptor, body.value) if isinstance(body, Described) else (None, None)
        match fields:
            case list() if descriptor in _DECLARE:
                self._declare(event)
            case [bytes() as id, *rest] if descriptor in _DISCHARGE:

                def on_done(refusal: Refusal | None) -> None:
                    self._settle(event, *outcome_of(refusal))

                self._coordinator.discharge(id, self.transactions, on_done, fail=bool(rest) and rest[0] is True)
            case _:
                text = "the coordinator understands declare and discharge"
                self._settle(event, Outcome.REJECTED, "amqp:not-implemented", text)

    def _declare(self, event: Delivery) -> None:
        id = self._coordinator.declare(self.transactions)
        self._owned.add(id)
        if event.delivery_tag is not None:
            self._transport.engine.decisions.declare(self._link, event.delivery_tag, id)

    def _settle(self, event: Delivery, outcome: Outcome, condition: str, description: str) -> None:
        if event.delivery_tag is not None:
            self._transport.engine.decisions.settle(self._link, event.delivery_tag, outcome, condition, description)
            self._transport.flush_soon()
