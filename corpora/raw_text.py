"""Raw text for `objective=mntp` and `objective=simcse`: each text is its own positive."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from cli.errors import UserError, reading
from corpora.docstring_pairs import training_side
from corpora.files import REMEDY, data_files, rows, stem, text_of
from corpora.hub import load_split, rows_of
from corpora.triples import Triple, function_of, read_once

Config = dict[str, Any]


def read_texts(data: Config, cache_dir: str) -> list[Triple]:
    """Return each text of `data` as query and as positive, its source with it; repeated texts once.
    data=docstrings: the docstrings of the training side, never of the held-out packages. Others: by the function that
    `data.texts` names. Raises `UserError` for data of pairs, and where no text is left."""
    refuse_pairs(data)
    return read_once(_read, data, cache_dir)


def refuse_pairs(data: Config) -> None:
    """Raise `UserError` for data of pairs, where raw text is read."""
    if not {"packages", "texts"} & data.keys():
        raise UserError(
            f"data={data['name']} holds pairs, and this objective reads raw text. Give data=docstrings, data=text "
            "data.path=<file>, data=wikitext or data=wiki_sentences (as experiment=llm2vec/mntp and llm2vec/simcse do)."
        )


def _read(data: Config, cache_dir: str) -> list[Triple]:
    if "packages" in data:
        texts = {d.text: d.package for d in training_side(data, cache_dir)}
    else:
        texts = {text: source for text, source in function_of(data["texts"])(data) if len(text) >= data["shortest"]}
    if not texts:
        raise UserError(
            f"{data.get('path') or data['name']} holds no text of data.shortest={data.get('shortest')} characters or "
            "more. Name other texts, or lower data.shortest."
        )
    return [Triple(text, text, (), source) for text, source in texts.items()]


def file_texts(data: Config) -> Iterator[tuple[str, str]]:
    """`data=text`: yield (text, file name) of each line of .txt, and of column `data.column` of .jsonl, .csv, .parquet.
    Raises `UserError` with file and line for a record without that column."""
    for path in data_files(data["path"]):
        lines = path.name.endswith((".txt", ".txt.gz"))
        number = 0
        for number, text in enumerate(_lines(path) if lines else _column(path, data["column"]), 1):  # noqa: B007
            yield text, stem(path)
        if not number:
            raise UserError(f"{path} is empty. Put one text a line, or take it off data.path.")


def hub_texts(data: Config) -> Iterator[tuple[str, str]]:
    """`data=wikitext`, `data=wiki_sentences`: yield (text, name) of a hub data set, or of its copy in `data.path`.
    Headings (" = X = ") are left out. Raises `UserError` where the hub cannot be reached and nothing is cached."""
    split, column = load_split(data), data["column"]
    if column not in split.column_names:
        raise UserError(_no_column(data["path"] or data["dataset"], column, split.column_names))
    for row in rows_of(split, [column]):
        bare = (row[column] or "").strip()
        if not (bare.startswith("=") and bare.endswith("=")):
            yield bare, data["name"]


def _lines(path: Path) -> Iterator[str]:
    with reading(path, REMEDY), text_of(path) as lines:
        yield from map(str.strip, lines)


def _column(path: Path, column: str) -> Iterator[str]:
    for number, row in rows(path):
        if not isinstance(row.get(column), str):
            raise UserError(_no_column(f"{path}, record {number}", column, row))
        yield row[column].strip()


def _no_column(place: str, column: str, others: Iterable[str]) -> str:
    return f"{place} has no text in column {column} (it has {', '.join(others)}). Set data.column."
