"""What 1,000 rules of access control cost a broker for each message that is published, beside a broker without rules.

Two brokers of this project, each a process, get the same messages in turn, from one client. Their processor time is
compared, which is of use on a machine with other work. Two brokers without rules differ by 3 % and more, by where their
memory lies, and always alike: so many pairs of them are compared, of which single ones are up to 15 % off. Messages go
to a queue that keeps the last ones, or over an exchange to such a queue; the rules that allow them are the last ones.

    python bench/broker_access.py [--rules N] [--messages N] [--pairs N] [--rounds N] [--case TEXT] [--json FILE]
"""

from __future__ import annotations

import contextlib
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs
from broker_peers import MeasuredBroker, new_queue, own_broker
from figures import Figure, note, parser, report

from qmf import messaging

#: Wanted of the cost without rules, at most.
WANTED = 1.05
#: Messages that wait for their outcomes.
CAPACITY = 1_000
#: So many keys that no message has that of an earlier one.
NEW_KEYS = 1_000_000
#: A queue that keeps the last messages.
RING = "qpid.max_count: 1000, qpid.policy_type: ring"


@attrs.frozen
class Case:
    """Something to measure.

    Attributes:
        title: of the figure.
        by_key: the rules are about routing keys; otherwise about other things.
        keys: of the messages; 0: they go to the queue itself.
        pattern: of the rules about keys, with a number.
    """

    title: str
    by_key: bool
    keys: int
    pattern: str = "secret.{}.#"


CASES = (
    Case("to a queue, rules about other things", by_key=False, keys=0),
    Case("to an exchange, rules about other things", by_key=False, keys=100),
    Case("to a queue, rules about keys", by_key=True, keys=0),
    Case("to an exchange, rules about keys, one key", by_key=True, keys=1),
    Case("to an exchange, rules about keys, 100 keys", by_key=True, keys=100),
    Case("to an exchange, rules about keys, each message a new key", by_key=True, keys=NEW_KEYS),
    Case("to an exchange, wildcards come first, 100 keys", by_key=True, keys=100, pattern="*.secret-{}.#"),
    Case("to an exchange, wildcards come first, new keys", by_key=True, keys=NEW_KEYS, pattern="*.secret-{}.#"),
    Case("to an exchange, keys with ${user}, new keys", by_key=True, keys=NEW_KEYS, pattern="${{user}}.secret-{}.#"),
)


def rules(count: int, case: Case) -> str:
    """A file; the last rules allow what is measured."""
    by_key = case.by_key
    needed = (
        "acl allow all access",
        "acl allow all create",
        "acl allow all bind",
        "acl allow all delete",
        "acl allow all publish exchange name=amq.default",
        "acl allow all publish exchange name=amq.topic routingkey=bench.#",
    )
    few = needed if by_key else needed[:-2]
    lines = (
        f"acl deny all publish exchange name=amq.topic routingkey={case.pattern.format(number)}"
        if by_key
        else f"acl deny all purge queue name=secret.{number}"
        for number in range(count - len(few))
    )
    last = () if by_key else ("acl allow all all",)
    return "".join(f"{line}\n" for line in (*lines, *few, *last))


def processor_seconds(pid: int) -> float:
    """Processor time of a process by the scheduler's clock: psutil's has steps of 10 ms, which is too much here."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


@attrs.define
class Client:
    """A connection to a broker, and what it sends with."""

    broker: MeasuredBroker
    sender: messaging.Sender
    subjects: Sequence[str]
    sent: int = 0

    def cost(self, count: int) -> float:
        """Microseconds of the broker's processor time for a message."""
        message = messaging.Message(bytes(100))
        before = processor_seconds(self.broker.process.pid)
        for number in range(self.sent, self.sent + count):
            if self.subjects:
                message.subject = self.subjects[number % len(self.subjects)]
            self.sender.send(message, sync=False)
        self.sender.session.sync()
        self.sent += count
        return (processor_seconds(self.broker.process.pid) - before) / count * 1e6


@contextlib.contextmanager
def client(broker: MeasuredBroker, case: Case) -> Iterator[Client]:
    """Connect to a broker."""
    with new_queue(broker.url, "bench", arguments=RING) as queue, messaging.Connection.establish(broker.url) as opened:
        session = opened.session()
        if case.keys:
            bindings = "link: {x-bindings: [{exchange: amq.topic, queue: bench, key: 'bench.#'}]}"
            session.sender(f"{queue}; {{{bindings}}}").close()
        subjects = [f"bench.{number}" for number in range(case.keys)]
        yield Client(broker, session.sender("amq.topic" if case.keys else queue, capacity=CAPACITY), subjects)


def measure(case: Case, count: int, messages: int, rounds: int, folder: Path) -> Mapping[bool, Sequence[float]]:
    """Costs with rules and without, of rounds in turn, of one pair of brokers."""
    file = folder / "bench.acl"
    file.write_text(rules(count, case))
    found: dict[bool, list[float]] = {True: [], False: []}
    with (
        own_broker("--acl-file", str(file)) as ruled,
        own_broker() as free,
        client(ruled, case) as with_rules,
        client(free, case) as without,
    ):
        for one in (with_rules, without):
            one.cost(messages // 4)
        for number in range(rounds):
            pair = ((True, with_rules), (False, without))
            for ruled_one, one in pair if number % 2 else reversed(pair):
                found[ruled_one].append(one.cost(messages))
    return found


def main() -> None:
    """Measure and report."""
    options = parser("The cost of rules of access control for published messages.")
    options.add_argument("--rules", type=int, default=1_000, metavar="N", help="rules (default: %(default)s)")
    options.add_argument("--messages", type=int, default=20_000, metavar="N", help="per round (default: %(default)s)")
    options.add_argument("--case", default="", metavar="TEXT", help="only the cases whose title has this text")
    options.add_argument("--pairs", type=int, default=11, metavar="N", help="of brokers (default: %(default)s)")
    options.add_argument("--rounds", type=int, default=3, metavar="N", help="for each pair (default: %(default)s)")
    arguments = options.parse_args()
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        for case in (case for case in CASES if arguments.case in case.title):
            pairs: list[float] = []
            others: list[float] = []
            for _ in range(arguments.pairs):
                found = measure(case, arguments.rules, arguments.messages, arguments.rounds, Path(folder))
                others += found[False]
                pairs.append(
                    statistics.median(own / other for own, other in zip(found[True], found[False], strict=True))
                )
            note(f"{case.title}: {', '.join(f'{pair:.3f}' for pair in pairs)}")
            other = statistics.median(others)
            own = other * statistics.median(pairs)
            figures.append(Figure(case.title, own, "µs", "without rules", other, at_most=WANTED))
    report(figures, arguments.json)


if __name__ == "__main__":
    main()
