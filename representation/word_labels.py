"""Texts whose words have labels: Python's grammar over examples of docstrings, or a CoNLL file of one's own."""

import ast
import doctest
import io
import keyword
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from analysis.statistics.arrays import Ints
from cli.errors import UserError, reading
from corpora.docstrings import NOT_DOCUMENTATION, DocumentedNode

FEWEST_WORDS = 5  # of a text
COLUMN = re.compile(r"[^ \t\r]+")  # of a line of CoNLL; other spaces, as in "10\xa0000", stand within words
CLASSES = {tokenize.NUMBER: "number", tokenize.STRING: "string", tokenize.OP: "operator"}


@dataclass(frozen=True)
class LabelledText:
    """A text; `words`: (start, end) in its characters, in order; `labels`: one per word."""

    text: str
    words: list[tuple[int, int]]
    labels: list[str]

    @property
    def forms(self) -> list[str]:
        """The words as they are written."""
        return [self.text[start:end] for start, end in self.words]


def drawn(texts: Sequence[LabelledText], count: int, seed: int) -> list[LabelledText]:
    """Return `count` distinct texts, or as many as there are, in an order that `seed` draws."""
    distinct = list({text.text: text for text in texts if len(text.words) >= FEWEST_WORDS}.values())
    return [distinct[k] for k in np.random.default_rng(seed).permutation(len(distinct))[:count]]


def code_examples(packages: Sequence[str]) -> Iterator[LabelledText]:
    """Yield the code of the examples (>>>) of each docstring of installed packages, its words labelled by grammar.

    Labels are by rule (`labelled_code`), none is a person's. Raises `UserError` for a package not installed.
    """
    parser = doctest.DocTestParser()
    for path in _sources(packages):
        try:
            tree = ast.parse(path.read_bytes())
        except SyntaxError:
            continue  # of another version of Python
        for node in ast.walk(tree):
            raw = ast.get_docstring(node) if isinstance(node, DocumentedNode) else None
            if raw and ">>>" in raw:
                try:
                    yield labelled_code("".join(example.source for example in parser.get_examples(raw)))
                except (ValueError, SyntaxError, tokenize.TokenError):
                    continue  # prompts that are no Python


def _sources(packages: Sequence[str]) -> Iterator[Path]:
    """Yield the files of packages that hold an example, by package and path."""
    for package in packages:
        spec = find_spec(package) if package.isidentifier() else None  # nothing is imported
        if spec is None or spec.origin is None:
            raise UserError(f"word_level.packages: '{package}' is not installed. Install it, or take it off the list.")
        root = Path(spec.origin).parent
        for path in sorted(root.rglob("*.py")) if spec.submodule_search_locations else [Path(spec.origin)]:
            if not NOT_DOCUMENTATION.intersection(path.relative_to(root).parts) and b">>>" in path.read_bytes():
                yield path


def labelled_code(code: str) -> LabelledText:
    """Return code with its tokens' classes: keyword, number, string, operator, and what a name is by its neighbours.

    A name before "(" is a `call`, one after "." an `attribute`, one before "=" within brackets an `argument`, any
    other a `name`. So the classes of names need what stands before and after them. Raises what `tokenize` raises.
    """
    starts = np.cumsum([0, *(len(line) + 1 for line in code.split("\n"))])  # as `tokenize` counts them: \n alone
    read = tokenize.generate_tokens(io.StringIO(code).readline)
    tokens = [token for token in read if token.type in CLASSES or token.type == tokenize.NAME]
    strings = ["", *(token.string for token in tokens), ""]
    words, labels, depth = [], [], 0
    for token, before, after in zip(tokens, strings, strings[2:], strict=False):
        depth += (token.string in "([{") - (token.string in ")]}") if token.type == tokenize.OP else 0
        label = CLASSES.get(token.type) or _kind_of_name(token.string, before, after, depth > 0)
        words.append((_place(starts, *token.start), _place(starts, *token.end)))
        labels.append(label)
    return LabelledText(code, words, labels)


def _place(starts: Ints, line: int, column: int) -> int:
    return int(starts[line - 1]) + column


def _kind_of_name(name: str, before: str, after: str, within: bool) -> str:
    if keyword.iskeyword(name):
        return "keyword"
    if after == "(":
        return "call"
    if before == ".":
        return "attribute"
    return "argument" if after == "=" and within else "name"


def read_conll(path: Path, column: int) -> list[LabelledText]:
    """Return the sentences of a file of columns (CoNLL-2000, CoNLL-2003, ...): a word per line, its form first.

    column: the place of the label among the columns, from 0; -1: the last. Columns are parted by blanks or tabs,
    sentences by empty lines; lines that begin with -DOCSTART- are left out. A text is its words with a space between.
    Raises `UserError` for a file that cannot be read, or a line without that column.
    """
    with reading(path, "Give word_level.conll=<file of columns>."):
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    sentences: list[list[tuple[str, str]]] = [[]]
    for number, line in enumerate(lines, start=1):
        parts = COLUMN.findall(line)
        if not parts or parts[0] == "-DOCSTART-":
            sentences.append([])
            continue
        if len(parts) <= max(1, column):
            has = f"has {len(parts)} columns, and none is word_level.column={column}"
            raise UserError(f"{path}, line {number} {has}. Give word, ..., label on each line, or another column.")
        sentences[-1].append((parts[0], parts[column]))
    if len({label for sentence in sentences for _, label in sentence}) < 2:
        raise UserError(f"{path} has fewer than two labels in column {column}. Set word_level.column.")
    return [_sentence(sentence) for sentence in sentences if sentence]


def _sentence(rows: list[tuple[str, str]]) -> LabelledText:
    ends = np.cumsum([len(word) + 1 for word, _ in rows]) - 1
    words = [(int(end) - len(word), int(end)) for end, (word, _) in zip(ends, rows, strict=True)]
    return LabelledText(" ".join(word for word, _ in rows), words, [label for _, label in rows])
