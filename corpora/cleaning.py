"""A docstring without its markup: reStructuredText roles, doctest blocks, signatures and ruled headings removed."""

import re

CLEANING_VERSION = 5  # raise with any change below: cached docstrings are keyed by it

ROLE = re.compile(r":[a-zA-Z][\w:+-]*:`~?!?([^`<]*?)(?:\s*<[^`>]*>)?`")
LITERAL = re.compile(r"``?([^`]*)``?_{0,2}")
LINK = re.compile(r"\[([^\]\n]+)\]\((?:https?://|#)[^)\s]+\)|https?://\S+")
TAG = re.compile(r"</?(?:Tip|tip|p|br|b|i|code|frameworkcontent|pt|tf)\b[^>]*>|\[\[[\w.]+\]\]")
SIGNATURE = re.compile(r"^[\w.]+\s*\([^)]*\)\s*(?:->.*)?$", re.DOTALL)
RULE = re.compile(r"^\s*[=\-~^*#+\"']{3,}\s*$", re.MULTILINE)
DIRECTIVE = re.compile(r"^\s*\.\.\s+([\w-]+)::\s*", re.MULTILINE)
CODE_DIRECTIVES = ("code", "code-block", "sourcecode", "plot", "math", "image", "figure", "testcode", "ipython")
FIELDS = re.compile(  # where a summary ends although no blank line ends it
    r"\n(?=\s*(?::(?:param|arg|type|return|returns|rtype|raises|keyword)\b|"
    r"(?:Args|Arguments|Parameters|Returns|Yields|Raises|Example|Examples|Note|Notes|Attributes|Keyword Args|Inputs?|"
    r"Outputs?|Shape|Usage|versionadded|deprecated)\s*:?\s*(?:\n|$)|"
    r"(?:versionadded|versionchanged|deprecated|note|warning): ))"
)
SPACES = re.compile(r"[ \t]+")
LETTERS = re.compile(r"[A-Za-z]|[^\W\d_]{2}")  # of any script; one alone that is not ASCII is a symbol, as in "π"


def split_docstring(raw: str) -> tuple[str, str]:
    """Return (summary, rest) of a docstring as `ast.get_docstring` gives it, cleaned; ("", "") where none is left.
    The summary is the first paragraph that is not a signature, on one line. The rest keeps its line breaks."""
    text = RULE.sub("", _without_code(raw.expandtabs(4).replace("\r", "")))
    text = LITERAL.sub(r"\1", ROLE.sub(r"\1", text))
    text = LINK.sub(lambda m: m.group(1) or "", text)
    text = FIELDS.sub("\n\n", DIRECTIVE.sub(r"\1: ", TAG.sub("", text)))
    paragraphs = [p.strip("\n") for p in re.split(r"\n\s*\n", text) if LETTERS.search(p)]
    while paragraphs and SIGNATURE.match(paragraphs[0].strip()):
        paragraphs.pop(0)
    if not paragraphs:
        return "", ""
    summary = " ".join(paragraphs[0].split())
    lines = (SPACES.sub(" ", line).strip() for p in paragraphs[1:] for line in p.splitlines())
    return summary, "\n".join(line for line in lines if line)


def _without_code(text: str) -> str:
    """Drop doctest prompts with their output, fenced blocks and code directives with their indented block."""
    kept: list[str] = []
    in_doctest = in_fence = False
    code_indent: int | None = None
    for line in text.splitlines():  # a form feed ends one too: text of a held-out package has it
        stripped = line.strip()
        indent = len(line) - len(line.lstrip())
        if stripped.startswith(("```", "~~~")):
            in_fence = not in_fence
            continue
        if in_fence:
            continue
        if code_indent is not None:
            if not stripped or indent > code_indent:
                continue
            code_indent = None
        if stripped.startswith(">>>"):
            in_doctest = True
        elif not stripped:
            in_doctest = False
        opened = re.match(r"\.\.\s+([\w-]+)::", stripped)
        if opened and opened.group(1) in CODE_DIRECTIVES:
            code_indent = indent
            continue
        if not in_doctest:
            kept.append(line)
    return "\n".join(kept)
