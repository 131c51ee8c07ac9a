"""`qmf-acl`, as its user runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from qmf.tools.acl.cli import main

RULES = "acl allow bob@QPID create queue name=b.*\nacl deny all all\n"


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "users.acl"
    path.write_text(RULES)
    return path


def test_check(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(rules)]) == 0
    assert capsys.readouterr().out == ""
    rules.write_text("acl allow all all\n")
    assert main(["check", str(rules)]) == 0
    assert capsys.readouterr().out == f"{rules}:1: everything that no rule matches is allowed\n"
    assert main(["check", "--strict", str(rules)]) == 1


def test_check_names_all_errors_of_all_files(rules: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules.write_text("acl allow\nacl deny")
    assert main(["check", str(rules), str(tmp_path / "none")]) == 1
    assert capsys.readouterr().out == (
        f"ACL format error: {rules}:1: Line : 1, Insufficient tokens for acl definition.\n"
        f"ACL format error: {rules}:2: Line : 2, Insufficient tokens for acl definition.\n"
        f"cannot read {tmp_path / 'none'}: No such file or directory\n"
    )


def test_why(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", str(rules), "bob@QPID", "create", "queue", "name=b.1"]) == 0
    assert capsys.readouterr().out == "allow: line 1: acl allow bob@QPID create queue name=b.*\n"
    assert main(["why", str(rules), "bob@QPID", "create", "queue", "c", "durable=true"]) == 1
    assert capsys.readouterr().out == (
        "passed over  line 1: acl allow bob@QPID create queue name=b.*: name: 'c' is not 'b.*'\n"
        "deny: line 2: acl deny all all\n"
        "to allow it, insert before line 2: acl allow bob@QPID create queue name=c\n"
    )


def test_files_of_the_web_server(rules: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules.write_text("acl allow bob@QPID access method name=purge object=${user}.* agent=a\nacl deny all all\n")
    assert main(["check", str(rules)]) == 1
    assert 'Unknown property "object"' in capsys.readouterr().out
    assert main(["check", "--web", str(rules)]) == 0
    question = ["bob@QPID", "access", "method", "name=purge", "agent=a"]
    assert main(["why", "--web", str(rules), *question, "object=bob.x"]) == 0
    assert main(["why", "--web", str(rules), *question, "object=ann.x"]) == 1
    (tmp_path / "cases").write_text("deny bob@QPID access query x agent=a\ndeny bob@QPID create queue x\n")
    capsys.readouterr()
    assert main(["test", "--web", str(rules), str(tmp_path / "cases")]) == 2
    assert "cases:2: no operation 'create queue'" in capsys.readouterr().err
    (tmp_path / "new").write_text("acl allow bob@QPID access query schemapackage=p agent=a\nacl deny all all\n")
    assert main(["diff", "--web", str(rules), str(tmp_path / "new")]) == 0
    assert "bob@QPID may now access query schemapackage=p agent=a" in capsys.readouterr().out.replace(
        "agent=a schemapackage=p", "schemapackage=p agent=a"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["bob@QPID", "create"], "needs a user, an action and a type of object, such as: bob@QPID create queue name=q"),
        (["bob@QPID", "crate", "queue"], "no operation 'crate queue'; did you mean create queue"),
        (["bob@QPID", "create", "queue", "durabel=1"], "no property 'durabel'; did you mean durable?"),
    ],
)
def test_wrong_questions(rules: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    assert main(["why", str(rules), *words]) == 2
    assert capsys.readouterr().err.startswith(f"qmf-acl: {message}")


def test_test(rules: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = tmp_path / "cases"
    cases.write_text("# cases\n\nallow bob@QPID create queue name=b.1\ndeny ann@QPID purge queue q\n")
    assert main(["test", str(rules), str(cases)]) == 0
    assert capsys.readouterr().out == "2 cases, 0 failed\n"
    cases.write_text("allow ann@QPID purge queue q\n")
    assert main(["test", str(rules), str(cases)]) == 1
    assert capsys.readouterr().out == (
        f"{cases}:1: ann@QPID purge queue 'q': deny: line 2: acl deny all all\n1 cases, 1 failed\n"
    )
    cases.write_text("\nmaybe ann@QPID purge queue q\n")
    assert main(["test", str(rules), str(cases)]) == 2
    assert capsys.readouterr().err == f"qmf-acl: {cases}:2: begins with 'maybe', not with allow or deny\n"


def test_diff(rules: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = tmp_path / "new.acl"
    new.write_text(RULES.replace("bob", "ann"))
    assert main(["diff", str(rules), str(rules), "--exit-code"]) == 0
    assert capsys.readouterr().out == "no difference found\n"
    assert main(["diff", str(rules), str(new), "--exit-code"]) == 1
    assert capsys.readouterr().out == (
        "ann@QPID may now create queue name=b.x\n"
        "    old: deny: line 2: acl deny all all\n"
        "    new: allow: line 1: acl allow ann@QPID create queue name=b.*\n"
        "bob@QPID may no longer create queue name=b.x\n"
        "    old: allow: line 1: acl allow bob@QPID create queue name=b.*\n"
        "    new: deny: line 2: acl deny all all\n"
    )


def test_errors_of_files_end_with_2(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules.write_bytes(b"acl deny all all\n# \xff\n")
    assert main(["why", str(rules), "a@Q", "purge", "queue"]) == 2
    assert capsys.readouterr().err == f"qmf-acl: cannot read {rules}: line 2 is not UTF-8\n"
    rules.write_text("rule")
    assert main(["why", str(rules), "a@Q", "purge", "queue"]) == 2
    assert capsys.readouterr().err.startswith(f"ACL format error: {rules}:1: ")
