"""Rows in order: sorting, filtering, the cursor, what is on the screen."""

from __future__ import annotations

from qmf_shell.screens.model import TableModel
from qmf_shell.screens.rows import Row, ScreenColumn

COLUMNS = (
    ScreenColumn("name", "Name", lambda row: row.item[0], lambda row: row.item[0], fixed=True),
    ScreenColumn("size", "Size", lambda row: row.item[1], lambda row: row.item[1], right=True),
    ScreenColumn("note", "Note", lambda row: None, lambda row: None),
)


def row(name: str, size: float | None) -> Row:
    return Row(name, (name, size), order=name, search=name)


def model(**sizes: float | None) -> TableModel:
    made = TableModel(COLUMNS)
    made.put(row(name, size) for name, size in sizes.items())
    return made


def names(made: TableModel) -> list[object]:
    return [item.key for item in made.arranged_rows()]


def test_rows_have_their_own_order_until_a_column_sorts() -> None:
    made = model(c=1, a=3, b=None, d=3)
    assert names(made) == ["a", "b", "c", "d"]
    made.sort_by("size")
    assert (made.descending, names(made)) == (True, ["a", "d", "c", "b"])
    made.sort_by("size")
    assert (made.descending, names(made)) == (False, ["c", "a", "d", "b"])
    made.sort_by("name")
    assert (made.descending, names(made)) == (False, ["a", "b", "c", "d"])
    made.reverse()
    assert names(made) == ["d", "c", "b", "a"]


def test_the_column_beside_sorts() -> None:
    made = model(a=1)
    made.sort_beside(1)
    assert made.sort == "name"
    made.sort_beside(1)
    assert made.sort == "size"
    made.sort_beside(-1)
    made.sort_beside(-1)
    assert made.sort == "note"


def test_changes_move_rows_and_the_cursor_goes_with_its_row() -> None:
    made = model(a=1, b=2, c=3)
    made.sort_by("size")
    made.move(1)
    assert made.current is made.row("b")
    changed = made.row("a")
    assert changed is not None
    changed.item = ("a", 9)
    made.put([changed])
    assert names(made) == ["a", "c", "b"]
    assert (made.cursor, made.current) == (2, made.row("b"))
    made.move_to(0)
    made.put([row("d", 10)])
    assert made.current is made.row("d")
    made.remove(["d", "nosuch"])
    assert names(made) == ["a", "c", "b"]


def test_a_cursor_whose_row_goes_stays_where_it_was() -> None:
    made = model(a=1, b=2, c=3)
    made.move_to(2)
    made.remove(["c"])
    assert made.current is made.row("b")
    made.remove(["a", "b"])
    assert (made.current, made.cursor) == (None, 0)
    made.move(1)
    made.scroll(5, 3)
    assert made.window(0) == (0, [])


def test_filters_hide_rows_until_they_are_removed() -> None:
    made = model(alpha=1, beta=2, gamma=3)
    made.set_filter("a", lambda item: "al" in item.search)
    assert names(made) == ["alpha"]
    made.put([row("altitude", 5), row("zeta", 5)])
    assert names(made) == ["alpha", "altitude"]
    made.set_filter("", None)
    assert len(made.arranged_rows()) == 5
    made.limit = 2
    made.put([row("eta", 1)])
    assert names(made) == ["alpha", "altitude"]


def test_a_cursor_whose_row_is_filtered_out_is_on_one_that_is_shown() -> None:
    made = model(**{f"r{number}": number for number in range(10)}, z1=1)
    made.move_to(9)
    made.set_filter("z", lambda item: "z" in item.search)
    assert made.current is made.row("z1")
    made.set_filter("x", lambda item: False)
    assert (made.current, made.cursor, made.window(3)) == (None, 0, (0, []))
    made.set_filter("", None)
    assert made.current is made.row("r0")


def test_the_window_follows_the_cursor() -> None:
    made = model(**{f"r{number:03}": number for number in range(100)})
    assert [len(made.window(10)[1]), made.top] == [10, 0]
    made.move_to(50)
    first, rows = made.window(10)
    assert (first, rows[-1].key) == (41, "r050")
    made.scroll(30, 10)
    assert (made.top, made.cursor) == (71, 71)
    made.scroll(-100, 10)
    assert (made.top, made.cursor) == (0, 9)
    made.move_to(99)
    assert made.window(200)[0] == 0


def test_columns_are_chosen_and_scrolled() -> None:
    made = model(a=1)
    made.sort_by("size")
    made.scroll_sideways(5)
    assert made.left == 1
    made.set_columns(COLUMNS[:1], ["name", "size"])
    assert (made.shown, made.sort, made.left) == (["name"], None, 0)


def test_texts_numbers_and_missing_values_can_be_compared() -> None:
    made = TableModel(COLUMNS)
    made.put([row("a", None), Row("b", ("b", "text 9"), order="b"), row("c", 2), Row("d", ("d", "text 10"), order="d")])
    made.sort_by("size", descending=False)
    assert names(made) == ["c", "b", "d", "a"]


def test_all_rows_are_replaced_by_others() -> None:
    made = model(a=1, b=2)
    made.sort_by("size")
    kept = made.row("b")
    assert kept is not None
    made.replace([row("c", 3), kept])
    assert names(made) == ["c", "b"]
    made.replace([])
    assert names(made) == []
