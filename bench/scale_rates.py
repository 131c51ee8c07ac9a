"""A row of `scale.py`: events at several rates to a hundred consoles, spread evenly in time and in bursts.

The consoles are two processes, as many as there are cores: in each, half of them, each with a connection of its own.
Nothing of what one console has decoded is used for another.
"""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path

import attrs
from figures import Figure
from processes import Program, own_agent, own_broker, program
from scale_meter import Meter, Step, expect

#: Consoles, in so many processes; cores that all of this may use at the largest rate; seconds at each rate.
CONSOLES, PROCESSES, CORES, SECONDS = 100, 2, 2, 10
#: Events in a second for which there is a limit.
WANTED = 5_000
#: Seconds between two events that follow the others: by them consoles find what did not arrive.
BETWEEN = 0.5
_HERE = Path(__file__).resolve().parent


def rates(size: int) -> list[Step]:
    """So many events in a second reach all consoles."""
    with own_broker() as (url, broker), own_agent(url, 0) as agent, contextlib.ExitStack() as stack:
        meter = Meter(size, broker=broker, agent=agent)
        parties = []
        for number in range(PROCESSES):
            command = (sys.executable, str(_HERE / "scale_consoles.py"), url, str(CONSOLES // PROCESSES))
            party = stack.enter_context(program(*command))
            meter.add(f"consoles {number + 1}", party)
            parties.append(party)
        for party in parties:
            expect(party.line(), "ready", "consoles")
        _raise(agent, parties, "bursts 200 2000")  # what consoles learn of the first ones
        names = {
            "spread": f"{CONSOLES} consoles receive events of {SECONDS} s, spread evenly",
            "bursts": f"{CONSOLES} consoles receive events of {SECONDS} s, ten bursts a second",
        }
        for how, name in names.items():
            with meter.step(name):
                began = time.perf_counter()
                counted = _raise(agent, parties, f"{how} {size * SECONDS} {size}")
                wall = time.perf_counter() - began
            step = meter.steps[-1]
            # What waits between agent and consoles comes and goes: it says nothing about growth.
            meter.steps[-1] = attrs.evolve(step, memory=0.0, more=_figures(step, counted, wall))
    return meter.steps


def _raise(agent: Program, parties: list[Program], order: str) -> list[list[float]]:
    """Have events raised until all of them have come or are known to be lost; what each process counted."""
    for party in parties:
        expect(party.ask("count 0"), "counting", "consoles")
    expect(agent.ask(order), "done", "the agent")
    count = int(order.split()[1])
    while True:
        counted = [[float(word) for word in party.ask("counted 0").split()] for party in parties]
        if all(least >= count for _, _, least, _, _ in counted):
            return counted
        time.sleep(BETWEEN)
        expect(agent.ask("events 1"), "done", "the agent")


def _figures(step: Step, counted: list[list[float]], wall: float) -> tuple[Figure, ...]:
    came, missed = sum(one[0] for one in counted), sum(one[1] for one in counted)
    name = f"{step.name}, {step.size:,} a second"
    parts = dict.fromkeys(("broker", "agent", "consoles"), 0.0)
    for part, spent in step.processor.items():
        if part.split()[0] in parts:
            parts[part.split()[0]] += spent / came * 1e6
    whole = Figure(f"{name}: all", sum(parts.values()), "us a delivery")
    lost = Figure(f"{name}: lost", missed, "deliveries")
    if step.size == WANTED:
        limit = CORES * 1e6 / (WANTED * CONSOLES)
        whole = attrs.evolve(whole, peer=f"{CORES} cores", peer_value=limit, at_most=1.0)
        lost = attrs.evolve(lost, limit=0)
    return (
        *(Figure(f"{name}: {part}", value, "us a delivery") for part, value in parts.items()),
        whole,
        Figure(f"{name}: deliveries", came / wall, "/s"),
        lost,
        Figure(f"{name}: 99 of 100 within", max(one[4] for one in counted), "ms"),
    )
