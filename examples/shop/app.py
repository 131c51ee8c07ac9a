"""The program: an agent, some tills, and simulated customers who pay, until Ctrl-C.

python -m shop
python -m shop amqp://broker.example.org:5672 --tills 8 --pace 20
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from qmf.agent import AccessRequest, Action, Agent
from qmf.errors import QmfError

from .models.shop.agent import DrawerFull, Receipt, Shop, TillClosed, TillOpened
from .receipts import Ledger
from .tills import ShopTill

CASHIERS = ("Ada", "Boris", "Carla", "Dan")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns its exit code."""
    options = arguments().parse_args(argv)
    try:
        asyncio.run(run(options))
    except KeyboardInterrupt:
        return 0
    except QmfError as error:
        print(f"shop: {error}", file=sys.stderr)
        return 1
    return 0


async def run(options: argparse.Namespace) -> None:
    """Open the shop, and keep it open."""
    agent = Agent(
        options.url,
        vendor="example.org",
        product="shop",
        instance=options.name,
        interval=options.interval,
        state_dir=options.state_dir,
        access=access,
        attributes={"street": "High Street"},
    )
    tills = furnish(agent, options.name, options.tills)
    async with agent:
        # Without a directory for state, the epoch is not a count of starts but the time of the start.
        print(f"{agent.name} is open" + (f", the {agent.epoch}. time" if options.state_dir else ""), flush=True)
        for till, cashier in zip(tills, CASHIERS, strict=False):
            till.open(cashier)
        async with asyncio.TaskGroup() as group:
            for till in tills:
                group.create_task(customers(till, options.pace / len(tills)))


def furnish(agent: Agent, name: str, count: int) -> list[ShopTill]:
    """Add a shop and its tills to an agent."""
    ledger = Ledger()
    shop = Shop(name=name)
    agent.add(shop)
    tills = [ShopTill(shop, number, ledger, agent.raise_event) for number in range(1, count + 1)]
    for till in tills:
        agent.add(till)
    agent.provide(Receipt, ledger)
    agent.register(TillOpened, TillClosed, DrawerFull)
    return tills


def access(request: AccessRequest) -> bool | str:
    """Allow everything, except refunds by trainees. The user id comes from the broker."""
    if request.user_id == "trainee" and request.action is Action.METHOD and request.method == "refund":
        return "trainees give no money back"
    return True


async def customers(till: ShopTill, pace: float) -> None:
    """Simulate customers at a till while it is open: `pace` per second on average."""
    while True:
        pause = random.expovariate(pace)
        await asyncio.sleep(pause)
        if till.cashier is None:
            till.waiting.set(0)
            continue
        till.waiting.set(random.randrange(1, 9))
        till.pay(random.randrange(50, 9_000), int(pause * 1e9))
        till.waiting.dec()


def tills(text: str) -> int:
    """Convert an option to a number of tills."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 99:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 99")
    return int(text)


def pace(text: str) -> float:
    """Convert an option to customers per second."""
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0.001 <= value <= 10_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0.001 to 10000")
    return value


def arguments() -> argparse.ArgumentParser:
    """The options of the command line."""
    parser = argparse.ArgumentParser(prog="shop", description="A shop whose tills can be managed.")
    parser.add_argument("url", nargs="?", default="amqp://127.0.0.1:5672", help="broker (%(default)s)")
    parser.add_argument("--name", default="corner", help="name of the shop (%(default)s)")
    parser.add_argument("--tills", type=tills, default=3, metavar="N", help="1 to 99 (%(default)d)")
    parser.add_argument("--pace", type=pace, default=4.0, metavar="N", help="customers per second (%(default)g)")
    parser.add_argument("--interval", type=float, default=5.0, metavar="S", help="seconds between publications")
    parser.add_argument("--state-dir", type=Path, metavar="DIR", help="directory for the number of starts")
    return parser
