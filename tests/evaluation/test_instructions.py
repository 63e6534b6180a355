"""The instruction table: every task of both English benchmarks, fallbacks, and the mteb mode."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from cli.errors import UserError
from evaluation.instructions import read_instructions


@pytest.mark.parametrize(("benchmark", "size"), [("MTEB(eng, v1)", 56), ("MTEB(eng, v2)", 41)])
def test_the_table_names_every_task_of_the_benchmark(benchmark: str, size: int) -> None:
    import mteb

    table = read_instructions("table").table
    names = {task.metadata.name for task in mteb.get_benchmark(benchmark).tasks}
    assert len(names) == size
    assert names - set(table["tasks"]) == set()


def test_where_mteb_has_a_prompt_the_table_agrees() -> None:
    import mteb

    table = read_instructions("table")
    own = read_instructions("mteb")
    tasks = [t for name in ("MTEB(eng, v1)", "MTEB(eng, v2)") for t in mteb.get_benchmark(name).tasks]
    prompted = [t.metadata for t in tasks if t.metadata.prompt]
    assert len(prompted) > 60
    for metadata in prompted:
        assert table.of(metadata, "query") == own.of(metadata, "query")


def test_own_entry_then_type_then_default(tmp_path: Path) -> None:
    path = tmp_path / "table.yaml"
    path.write_text("default: d\ntypes: {STS: s}\ntasks: {Mine: {query: q, document: doc}}\n")
    table = read_instructions("table", path)
    of = lambda name, kind, side: table.of(SimpleNamespace(name=name, type=kind), side)  # noqa: E731
    assert of("Mine", "STS", "query") == "q"
    assert of("Mine", "STS", "document") == "doc"
    assert of("Other", "STS", "query") == "s"
    assert of("Other", "STS", "document") == ""
    assert of("Other", "Retrieval", "query") == "d"


def test_a_malformed_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.yaml"
    path.write_text("default: d\ntypes: {STS: {qeury: x}}\ntasks: {}\n")
    with pytest.raises(UserError, match=r"table\.yaml"):
        read_instructions("table", path)


def test_no_instruction_is_the_default_everywhere() -> None:
    none = read_instructions("none")
    assert none.of(SimpleNamespace(name="SciFact", type="Retrieval"), "query") == ""
    assert none.used(SimpleNamespace(name="SciFact", type="Retrieval")) == {}
