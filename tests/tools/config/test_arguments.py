"""Options of `qpid-config` and the properties that they become."""

from __future__ import annotations

import pytest

from qmf.tools.config.arguments import exchange_properties, extra_properties, header_arguments, queue_properties
from qmf.tools.config.options import build_parser, with_bindings_flag


@pytest.mark.parametrize(
    ("words", "properties"),
    [
        ("", {}),
        ("--durable", {"durable": True}),
        ("--max-queue-size 1 --max-queue-count 2", {"qpid.max_size": 1, "qpid.max_count": 2}),
        ("--limit-policy none", {}),
        ("--limit-policy reject", {"qpid.policy_type": "reject"}),
        ("--limit-policy flow-to-disk", {"qpid.policy_type": "flow_to_disk"}),
        ("--limit-policy ring", {"qpid.policy_type": "ring"}),
        ("--limit-policy ring-strict", {"qpid.policy_type": "ring_strict"}),
        ("--order fifo", {}),
        ("--order lvq", {"qpid.last_value_queue": 1}),
        ("--order lvq-no-browse", {"qpid.last_value_queue_no_browse": 1}),
        ("--lvq-key symbol", {"qpid.last_value_queue_key": "symbol"}),
        ("--generate-queue-events 2", {"qpid.queue_event_generation": 2}),
        ("--flow-stop-size 4 --flow-resume-size 3", {"qpid.flow_stop_size": 4, "qpid.flow_resume_size": 3}),
        ("--flow-stop-count 2 --flow-resume-count 1", {"qpid.flow_stop_count": 2, "qpid.flow_resume_count": 1}),
        ("--group-header g --shared-groups", {"qpid.group_header_key": "g", "qpid.shared_msg_group": 1}),
        ("--alternate-exchange dead", {"alternate-exchange": "dead"}),
        ("--replicate all", {"qpid.replicate": "all"}),
        ("--argument a=1 --argument b=text --argument c", {"a": 1, "b": "text", "c": None}),
        ("--cluster-durable", {}),
        ("--file-count 8", {}),
        (
            "--durable --file-count 8 --file-size 24 --efp-partition-num 1 --efp-pool-file-size 2048",
            {
                "durable": True,
                "qpid.file_count": 8,
                "qpid.file_size": 24,
                "qpid.efp_partition_num": 1,
                "qpid.efp_pool_file_size": 2048,
            },
        ),
        (
            "--durable --wcache-page-size 4 --wcache-num-pages 16",
            {"durable": True, "qpid.wcache-page-size": 4, "qpid.wcache-num-pages": 16},
        ),
    ],
)
def test_options_of_queues(words: str, properties: dict[str, object]) -> None:
    assert queue_properties(build_parser().parse_args(words.split())) == properties


@pytest.mark.parametrize(
    ("words", "properties"),
    [
        ("", {}),
        ("--sequence --ive", {"qpid.msg_sequence": 1, "qpid.ive": 1}),
        ("--durable --alternate-exchange dead", {"durable": True, "alternate-exchange": "dead"}),
        ("--argument auto-delete=1 --replicate none", {"auto-delete": 1, "qpid.replicate": "none"}),
    ],
)
def test_options_of_exchanges(words: str, properties: dict[str, object]) -> None:
    assert exchange_properties(build_parser().parse_args(words.split())) == properties


def test_conditions_of_headers() -> None:
    assert header_arguments(["any", "a=1,", "b=x y"]) == {"a": "1", "b": "x y", "x-match": "any"}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "needs 'any' or 'all'"),
        (["all"], "and conditions name=value"),
        (["some", "a=1"], "not 'some'"),
        (["all", "a"], "'a' is not a condition name=value"),
        (["all", "=1"], "'=1' is not a condition"),
    ],
)
def test_wrong_conditions(words: list[str], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        header_arguments(words)


@pytest.mark.parametrize(
    ("words", "bindings", "broker"),
    [
        (["-b", "exchanges"], True, None),
        (["-b", "queues", "orders"], True, None),
        (["exchanges", "-b"], True, None),
        (["-b", "-a", "mq1:5672", "queues"], True, "mq1:5672"),
        (["exchanges", "-b", "10.1.1.7:10000"], False, "10.1.1.7:10000"),
        (["-b", "guest/guest@mq1", "queues"], False, "guest/guest@mq1"),
        (["queues", "-r", "--broker", "queues"], True, "queues"),
        (["queues", "--bindings"], True, None),
    ],
)
def test_the_two_meanings_of_b(words: list[str], bindings: bool, broker: str) -> None:
    options = build_parser().parse_intermixed_args(with_bindings_flag(words))
    assert (options.recursive, options.broker) == (bindings, broker)


def test_digits_that_are_no_plain_number_stay_text() -> None:
    found = extra_properties(["a=12", "b=-1", "c=0123", "d=1_000", "e= 5"])
    assert found == {"a": 12, "b": -1, "c": "0123", "d": "1_000", "e": " 5"}
