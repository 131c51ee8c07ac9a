"""Reports in the web: made by a process of their own, for who may read, not longer than allowed."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from support.web import called, memory_application, web_options

from qmf.bus import MemoryExchange
from qmf.web import Scope
from qmf.web.problems import Problem
from qmf.web.reports.making import ReportMaker, ReportQuestion
from qmf.web.reports.routes import PAGE

PEOPLE = {"accept": "text/html,*/*"}


def program(text: str) -> tuple[str, ...]:
    """A command in place of `qmf-pipeline`."""
    return (sys.executable, "-c", text)


def maker(text: str, seconds: float = 60.0) -> ReportMaker:
    return ReportMaker("lake", seconds, command=program(text))


def test_every_value_is_the_value_of_an_option() -> None:
    query = {
        **{"from": " 2030-01-31 ", "to": "--own", "for": "", "compare": "-1d", "class": "--output=x,y"},
        **{"own": "1", "lake": "/etc", "output": "/x"},
    }
    assert ReportQuestion.parse(query).arguments == [
        *("--from=2030-01-31", "--to=--own", "--compare=-1d", "--class=--output=x,y", "--own")
    ]
    assert ReportQuestion.parse({"own": "0"}).arguments == []
    assert len(ReportQuestion.parse({"from": "x" * 10_000}).first) == 200


async def test_the_command_gets_lake_and_question_and_prints_the_page() -> None:
    page = await maker("import sys; print(sys.argv[1:])").make(ReportQuestion(first="a", own=True))
    assert page.decode().strip() == "['--lake=lake', '--output=-', '--from=a', '--own']"


@pytest.mark.parametrize(
    ("text", "status", "detail"),
    [
        ("import sys; print('qmf-pipeline: no lake', file=sys.stderr); sys.exit(2)", 422, "no lake"),
        ("import sys; print('odd', file=sys.stderr); sys.exit(2)", 500, "the report failed: odd"),
        ("raise KeyError('x')", 500, "the report failed: KeyError: 'x'"),
        ("import sys; sys.exit(7)", 500, "the report failed: exit code 7"),
    ],
)
async def test_what_the_command_says_is_the_problem(text: str, status: int, detail: str) -> None:
    with pytest.raises(Problem) as caught:
        await maker(text).make(ReportQuestion())
    assert (caught.value.status, caught.value.detail) == (status, detail)


async def test_a_report_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    started = tmp_path / "started"
    text = f"import time, pathlib; pathlib.Path({str(started)!r}).touch(); time.sleep(600)"
    with pytest.raises(Problem) as caught:
        await maker(text, 0.2).make(ReportQuestion())
    assert caught.value.status == 503
    assert "not ready after 0.2 s" in caught.value.detail


async def test_reports_are_made_one_at_a_time_and_the_loop_goes_on() -> None:
    text = "import time; begin = time.time_ns(); time.sleep(0.3); print(begin, time.time_ns())"
    own = maker(text)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    pages = await asyncio.gather(*(own.make(ReportQuestion()) for _ in range(3)))
    counting.cancel()
    times = sorted([int(part) for part in page.split()] for page in pages)
    assert all(end <= begin for (_, end), (begin, _) in pairwise(times))
    assert turns > 10


async def test_a_report_is_ended_with_who_asked_for_it() -> None:
    own = maker("import time; time.sleep(600)")
    asking = asyncio.create_task(own.make(ReportQuestion()))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert asking.cancelled()


async def test_without_a_lake_there_is_no_report() -> None:
    async with called(memory_application(MemoryExchange())) as client:
        answer = await client.get(PAGE)
        assert (answer.status_code, answer.json()["detail"]) == (
            404,
            "there is no recording: start qmf-web with --lake DIR",
        )


async def test_only_who_may_read_sees_reports(tmp_path: Path) -> None:
    options = web_options(
        users={"ann": "secret", "bob": "other"}, grants={"bob": frozenset({Scope.CALL})}, lake=str(tmp_path)
    )
    async with called(memory_application(MemoryExchange(), options)) as client:
        assert (await client.get(PAGE)).status_code == 401
        answer = await client.get(f"{PAGE}?for=1h", headers=PEOPLE)
        assert (answer.status_code, answer.headers["location"]) == (303, f"/login?next={PAGE}%3Ffor%3D1h")
        assert (await client.get(PAGE, auth=("bob", "other"))).status_code == 403
        # Who may read sees what is wrong with the folder.
        if importlib.util.find_spec("matplotlib") is not None:
            answer = await client.get(PAGE, auth=("ann", "secret"))
            assert answer.status_code == 422
            assert "not a lake" in answer.json()["detail"]


@pytest.mark.slow
async def test_people_get_the_page_or_a_way_back(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'qmf[pipeline]'")
    pytest.importorskip("duckdb", reason="duckdb is not installed: pip install 'qmf[pipeline]'")
    from pipeline.lakes import Shop

    shop = Shop(tmp_path / "lake")
    shop.agent(1000, "added")
    shop.put((1000, 1), (1030, 2), (1060, 4))
    shop.beat(1000, 1060)
    async with called(memory_application(MemoryExchange(), web_options(lake=shop.root))) as client:
        answer = await client.get(f"{PAGE}?for=1h", headers=PEOPLE)
        assert answer.status_code == 200
        assert answer.text.startswith("<!DOCTYPE html>")
        assert "till sales" in answer.text
        assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src 'unsafe-inline'")
        answer = await client.get(PAGE, params={"from": '"><b>', "own": "1"}, headers=PEOPLE)
        assert answer.status_code == 422
        assert "is not a time such as 2030-01-31" in answer.text
        assert "<b>" not in answer.text
        assert 'href="/report?from=%22%3E%3Cb%3E&amp;own=1"' in answer.text
