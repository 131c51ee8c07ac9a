"""`qmf-pipeline rules check`, `rules test` and `rules try`."""

from __future__ import annotations

import argparse
from pathlib import Path

from qmf._text_files import read_text
from qmf.pipeline.commands.base import Subcommand, add_days, check_lake, duration, print_line
from qmf.pipeline.errors import PipelineError
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.views.times import parse_duration


def _check_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="rules, in TOML")
    parser.add_argument("--lake", metavar="DIR", help="a lake whose classes the rules must fit")
    parser.add_argument(
        "--schema",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        help="a schema in XML, whose classes count as well; may be repeated",
    )


def _test_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="tests, in TOML")


def _try_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="rules, in TOML")
    add_days(parser)
    parser.add_argument(
        "--late", type=duration, default="0 seconds", metavar="TIME", help="how long rows may be late, as of correlate"
    )


def _check(options: argparse.Namespace) -> None:
    from qmf.pipeline.correlate.rule_checks import check_rules
    from qmf.pipeline.correlate.rule_table import RuleError
    from qmf.pipeline.notifying.config_file import config_errors

    errors: list[str] = []
    lake = None
    if options.lake is not None:
        check_lake(options.lake)
        lake = DeltaLake(options.lake)
    for file in options.files:
        try:
            others = [
                error.at(file) for error in config_errors(read_text(file, PipelineError), folder=Path(file).parent)
            ]
            rules, missing = check_rules(file, lake, options.schema, others)
        except RuleError as error:
            errors += str(error).splitlines()
            continue
        for text in missing:
            print_line(f"{file}: {text}")
        print_line(f"{file}: {len(rules)} rules, no error")
    if errors:
        raise PipelineError("\n".join([f"{len(errors)} error{'s' if len(errors) > 1 else ''}", *errors]))


def _test(options: argparse.Namespace) -> None:
    from qmf.pipeline.correlate.rule_tests import load_rule_tests, run_rule_tests

    failed = total = 0
    for file in options.files:
        for test, wrong in run_rule_tests(load_rule_tests(file)):
            total += 1
            failed += bool(wrong)
            print_line(f"{'FAILED' if wrong else 'ok'}  {test.name}")
            for text in wrong:
                print_line(f"  {text}")
    if failed:
        raise PipelineError(f"{failed} of {total} tests failed")


def _try(options: argparse.Namespace) -> None:
    from qmf.pipeline.commands.correlate import print_alerts
    from qmf.pipeline.correlate.batch import evaluate_lake
    from qmf.pipeline.correlate.batch_input import CorrelateOptions
    from qmf.pipeline.correlate.rule_file import load_valid_rules
    from qmf.pipeline.runners.process import ProcessRunner

    check_lake(options.lake)
    rules, wrong = load_valid_rules(options.file)
    result = evaluate_lake(
        ProcessRunner(),
        CorrelateOptions(
            lake=options.lake,
            storage=dict(options.storage),
            out="",
            rules=rules,
            wrong=wrong,
            first=options.first,
            last=options.last,
            late=parse_duration(options.late),
        ),
        print_line,
    )
    print_alerts(result.alerts)
    raised = sum(alert.raised for alert in result.alerts)
    open_ = raised - sum(alert.cleared for alert in result.alerts)
    print_line(f"{raised} alerts, {open_} of them open at the end; {result.counts}")
    if result.failures:
        raise PipelineError("\n".join(["rules failed; the others were evaluated", *result.failures]))


COMMAND = Subcommand(
    "rules",
    "Check, test and try rules",
    actions=(
        Subcommand("check", "Find all errors in files of rules", _check_options, _check, lake=False),
        Subcommand(
            "test", "Run tests of rules: given rows, and the alerts at some times", _test_options, _test, lake=False
        ),
        Subcommand("try", "Show what rules would have raised over a lake", _try_options, _try),
    ),
)
