"""Kinds of queries and documents: what splits a retrieval task's queries into subsets, without any model."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

FEATURES = ("query_words", "query_names", "document_words", "overlap")
OUTSIDE = "\"'`.,;:!?()[]{}<>*"  # punctuation around a word, which is no part of it
JOINED = re.compile(r"\d|_|\w\.\w\w|\w\(\w")  # a digit, or parts joined: np.mean, f(x), but not e.g.
TERM = re.compile(r"\w+")


def text_features(
    queries: Mapping[str, str], documents: Mapping[str, str], relevant: Mapping[str, Sequence[str]]
) -> dict[str, list[float | None]]:
    """Return feature -> one value per query of `relevant`, in its order: a mean over its documents, None without any.

    queries, documents: id -> text; relevant: query -> ids of its relevant documents.

    * query_words, document_words: words between spaces;
    * query_names: share of the query's words that look like a name (`is_name`);
    * overlap: share of the query's terms that stand in the document, each weighted by its BM25 idf over the relevant
      documents (Robertson and Zaragoza 2009, section 3.1, plus one as Lucene has it), so that "the" counts for little.
    """
    terms = {key: set(TERM.findall(text.casefold())) for key, text in documents.items()}
    frequency = Counter(term for of_document in terms.values() for term in of_document)
    rows: list[tuple[float | None, ...]] = []
    for query, keys in relevant.items():
        words, asked = queries[query].split(), set(TERM.findall(queries[query].casefold()))
        idf = {t: math.log1p((len(terms) - frequency[t] + 0.5) / (frequency[t] + 0.5)) for t in sorted(asked)}
        shared = [math.fsum(idf[t] for t in asked & terms[key]) / math.fsum(idf.values()) for key in keys if idf]
        names = sum(is_name(word, k == 0) for k, word in enumerate(words))
        lengths = [len(documents[key].split()) for key in keys]
        rows.append((len(words), names / max(1, len(words)), _mean(lengths), _mean(shared)))
    return {name: [row[k] for row in rows] for k, name in enumerate(FEATURES)}


def is_name(word: str, first: bool = False) -> bool:
    """Tell whether a word looks like a name or an identifier: it holds a digit, an underscore, joined parts
    (`np.mean`, `f(x)`) or a capital after its first letter, or begins with a capital and is not the `first` word."""
    bare = word.strip(OUTSIDE)
    capital = bare[1:] != bare[1:].lower() or (len(bare) > 1 and bare[0].isupper() and not first)
    return capital or bool(JOINED.search(bare))


def _mean(values: Sequence[float]) -> float | None:
    return round(math.fsum(values) / len(values), 6) if values else None
