"""Raw text for `objective=mntp` and `objective=simcse`: each text is its own positive."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cli.errors import UserError, reading
from corpora.files import REMEDY, data_files, rows, stem, text_of
from corpora.hub import columns_of, load_split
from corpora.readers import docstring_sources, function_of, read_once
from corpora.triples import Triple

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
            "data.path=<file>, data=wikitext or data=wiki_sentences; with a hub model: experiment=llm2vec/mntp or "
            "experiment=llm2vec/simcse, which bring the recipe of the objective, with model= and study= of your own."
        )


def _read(data: Config, cache_dir: str) -> list[Triple]:
    if "packages" in data:
        texts = dict(docstring_sources(data, cache_dir))
    else:
        texts = {text: source for text, source in function_of(data["texts"])(data) if len(text) >= data["shortest"]}
    if not texts:
        place = data.get("path") or ", ".join(data.get("packages", ())) or data["dataset"]
        raise UserError(
            f"data={data['name']} ({place}) holds no text of data.shortest={data['shortest']} characters or more. "
            "Name other texts, or lower data.shortest."
        )
    return [Triple(text, text, (), source) for text, source in texts.items()]


def file_texts(data: Config) -> Iterator[tuple[str, str]]:
    """`data=text`: yield (text, file name) of each line of .txt, and of column `data.column` of .jsonl, .csv,
    .parquet.
    Raises `UserError` with file and line for a record without that column."""
    for path in data_files(data["path"]):
        texts = _lines(path) if path.name.endswith((".txt", ".txt.gz")) else _column(path, data["column"])
        text = None
        for text in texts:
            yield text, stem(path)
        if text is None:
            raise UserError(f"{path} is empty. Put one text a line, or take it off data.path.")


def hub_texts(data: Config) -> Iterator[tuple[str, str]]:
    """`data=wikitext`, `data=wiki_sentences`: yield (text, data set) of a hub data set, or of its copy in
    `data.path`.
    Headings (" = History = ") are left out. Raises `UserError` where the hub cannot be reached and nothing is
    cached."""
    path = data["path"]
    if path and not Path(path).is_dir():
        yield from file_texts(data)
        return
    split = load_split(data)
    if data["column"] not in split.column_names:
        others = ", ".join(split.column_names)
        raise UserError(f"{path or data['dataset']} has no column {data['column']} (it has {others}). Set data.column.")
    for batch in columns_of(split, [data["column"]]):
        for text in batch[data["column"]]:
            bare = (text or "").strip()
            if not (bare.startswith("=") and bare.endswith("=")):
                yield bare, data["name"]


def _lines(path: Path) -> Iterator[str]:
    with reading(path, REMEDY), text_of(path) as lines:
        yield from map(str.strip, lines)


def _column(path: Path, column: str) -> Iterator[str]:
    for number, row in rows(path):
        text = row.get(column)
        if not isinstance(text, str):
            others = ", ".join(map(str, row))
            raise UserError(
                f"{path}, record {number} has no text in column {column} (it has {others}). Set data.column."
            )
        yield text.strip()
