"""`replay`: publishes a recording again, on a broker of its own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

import attrs

from qmf.views.cells import Instant, NamedValues, Quantity
from qmf.views.conditions.words import Word
from qmf.views.formatting import Formatter
from qmf.views.text import plural
from qmf.views.times import duration_text
from qmf_shell.parsing.command import BoundArguments, Command, Option, Parameter, ParameterKind
from qmf_shell.parsing.times import Period, split_period
from qmf_shell.results.result import Notice, NoticeLevel, Result, ResultStream, Role, StreamLine, TableColumn
from qmf_shell.session.context import Context
from qmf_shell.session.lake_source import latest

if TYPE_CHECKING:
    from qmf.bus import AmqpBus
    from qmf.pipeline.history.replaying import Replay, ReplayProgress

#: Seconds between lines about the progress.
PROGRESS = 5.0
_COLUMNS = (
    TableColumn("Time", Role.TIME),
    TableColumn("Done", Role.NUMBER),
    TableColumn("Published"),
)


def run(context: Context, args: BoundArguments) -> ResultStream:
    """Start the replay."""
    words, speed = _speed(args.words)
    words, period = split_period(words)
    if words:
        raise REPLAY.misuse(f"{words[0].text!r} is one word too many")
    if period is None:
        raise REPLAY.misuse("write from and a time")
    reader = context.past()
    first, last = max(period.first, reader.begin()), min(period.last, latest(reader))
    if first >= last:
        shown = Formatter().instant(reader.begin()), Formatter().instant(latest(reader))
        raise REPLAY.misuse(f"nothing was recorded then: the lake has {shown[0]} to {shown[1]}")
    port = REPLAY.count(args, "port", 0)
    if port > 65535:
        raise REPLAY.misuse(f"option --port needs a number up to 65535, not {port}")
    job = _Job(context, Period(first, last), speed, port, "keep" in args.options, "wait" in args.options)
    return ResultStream(job.lines())


def _speed(words: tuple[Word, ...]) -> tuple[list[Word], float]:
    """The words without ``speed N``, and the number."""
    at = next((at for at, word in enumerate(words) if word.text.lower() == "speed" and word.plain), None)
    if at is None:
        return list(words), 1.0
    text = words[at + 1].text if at + 1 < len(words) else ""
    try:
        speed = float(text.lower().removesuffix("x"))
    except ValueError:
        speed = 0.0
    if not 0.001 <= speed <= 1_000_000:
        raise REPLAY.misuse(f"speed needs a number from 0.001 to 1000000, not {text!r}")
    return [*words[:at], *words[at + 2 :]], speed


@attrs.define
class _Job:
    """One replay, with its broker."""

    context: Context
    period: Period
    speed: float
    port: int
    keep: bool
    wait: bool

    def lines(self) -> Iterator[Result]:
        """What is printed while it runs; closing it ends the replay."""
        # Imported here: sessions without a replay need none of them.
        from qmf._loop_thread import LoopThread
        from qmf.broker import EmbeddedBroker
        from qmf.bus import AmqpBus
        from qmf.pipeline.history.reader import LakeReader
        from qmf.pipeline.history.replaying import Replay

        broker = EmbeddedBroker(host="127.0.0.1", port=self.port)
        with contextlib.ExitStack() as stack:
            broker.start()
            stack.callback(broker.close)
            loop = LoopThread("qmf-replay")
            stack.callback(loop.stop)
            # A reader of its own, since it is used on another thread.
            reader = stack.enter_context(LakeReader(self.context.past().url))
            reader.refresh()
            bus = AmqpBus(broker.url)
            replay = Replay(reader, bus, self.period.first, self.period.last, speed=self.speed)

            loop.run(_begin(bus, replay))
            stack.callback(lambda: loop.run(_end(bus, replay)))
            yield Notice(self._title(broker.url), NoticeLevel.GOOD)
            if self.wait:
                yield Notice("Waiting for a console.")
                while not loop.run(_within(PROGRESS, replay.asked.wait)):
                    continue
            task = loop.run(_start(replay))
            while not loop.run(_wait_for_end(task, PROGRESS)):
                yield self._line(replay.progress)
            loop.run(_result(task))
            yield self._line(replay.progress)
            yield Notice(self._summary(replay.progress), NoticeLevel.GOOD)
            while self.keep:
                loop.run(asyncio.sleep(PROGRESS))

    def _title(self, url: str) -> str:
        first, last = map(Formatter().instant, (self.period.first, self.period.last))
        seconds = (self.period.last - self.period.first) / 1e9 / self.speed
        takes = duration_text(round(seconds * 1e9))
        return f"Replaying {first} to {last} at {url}, which takes {takes}; Ctrl-C ends it"

    def _line(self, progress: ReplayProgress) -> StreamLine:
        done = (progress.at - self.period.first) / (self.period.last - self.period.first)
        percent = Quantity(round(100 * min(1.0, done), 1), "percent")
        published = {"objects": progress.objects, "events": progress.events, "agents": progress.agents}
        return StreamLine(_COLUMNS, (Instant(progress.at), percent, NamedValues(published)))

    def _summary(self, progress: ReplayProgress) -> str:
        objects, events = (
            plural(progress.objects, "publication of objects", "publications of objects"),
            plural(progress.events, "event"),
        )
        more = "; the broker stays until Ctrl-C" if self.keep else ""
        return f"Replayed {objects} and {events}{more}"


async def _begin(bus: AmqpBus, replay: Replay) -> None:
    await bus.open()
    await replay.prepare()


async def _end(bus: AmqpBus, replay: Replay) -> None:
    await replay.close()
    await bus.close()


async def _start(replay: Replay) -> asyncio.Task[None]:
    return asyncio.get_running_loop().create_task(replay.run())


async def _wait_for_end(task: asyncio.Task[None], seconds: float) -> bool:
    """True if a task has ended, after so many seconds at most."""
    await asyncio.wait({task}, timeout=seconds)
    return task.done()


async def _result(task: asyncio.Task[None]) -> None:
    """Raise the error of a task, if it had one."""
    task.result()


async def _within(seconds: float, wait: Callable[[], Awaitable[object]]) -> bool:
    """True if something happens within so many seconds."""
    try:
        async with asyncio.timeout(seconds):
            await wait()
    except TimeoutError:
        return False
    return True


REPLAY = Command(
    name="replay",
    usage=("replay [-p PORT] [-w] [-k] from TIME [to TIME] [speed NUMBER]",),
    summary="Publish a recording again on a broker of its own, for consoles and rules",
    help=(
        "Starts an embedded broker on 127.0.0.1 and publishes there what a lake recorded: its agents appear with their "
        "names, with the objects that existed at the beginning, and publish objects and events in their order, in "
        "their pace or so many times faster. Consoles, recorders and rules connect to the printed URL and see it "
        "again. Times in messages are those of the recording. Methods are refused.",
        "With -w it begins when a console asks for agents, with -k the broker stays when it is over. Ctrl-C ends it.",
    ),
    examples=(
        ("replay from 13:00 to 14:00 speed 10", "an hour in six minutes"),
        ("replay -p 5680 -w from yesterday 23:00 to 01:00 speed 60", "on a fixed port, when a console is there"),
    ),
    parameters=(
        Parameter(
            "PERIOD",
            ParameterKind.PERIOD,
            "from TIME, to TIME, speed NUMBER",
            required=True,
            repeated=True,
            choices=(("speed", "seconds of the recording per second"),),
        ),
    ),
    options=(
        Option(("-p", "--port"), "port of the broker; by default any that is free", "PORT"),
        Option(("-w", "--wait"), "begin when a console asks for agents"),
        Option(("-k", "--keep"), "keep the broker when the recording is over, until Ctrl-C"),
    ),
    handler=run,
)
