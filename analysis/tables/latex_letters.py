r"""Letters that pdflatex cannot set with booktabs alone: Greek as mathematics, others by an engine that has them.

pdflatex (with its default encoding, OT1) knows ASCII, most of Latin with accents, and some signs; any other letter
stops it. `\beyond{letter}{code}` prints the letter under lualatex and xelatex, whose font must have it, and under
pdflatex the letter's number in Unicode, so that a table compiles everywhere and no two names look alike.
"""
# ruff: noqa: RUF001 (letters that look like Latin ones are what this is about)

import unicodedata

BEYOND = (
    r"\providecommand\beyond[2]{\ifdefined\directlua#1\else\ifdefined\XeTeXversion#1\else#2\fi\fi}"
    " % letters that pdflatex lacks"
)
# What pdflatex sets without a package, tried letter by letter (TeX Live 2022).
REFUSED = "«»ÐÞðþĄąĐđĘęĦħĮįĸĿŀŉŊŋŦŧŲųſ"
LATIN = {chr(code) for code in range(0xA1, 0x180)} - set(REFUSED) - {"\xad"}
KNOWN = LATIN | set("ȘșȚț–—‘’“”†‡•…‰™€№←↑→↓")
GREEK = "αβγδεζηθικλμνξπρςστυφχψωΓΔΘΛΞΠΣΥΦΨΩ"
SIGNS = {"−": "-", "≤": r"\leq", "≥": r"\geq", "≠": r"\neq", "≈": r"\approx", "∞": r"\infty"}


def command(letter: str) -> str:
    r"""Return LaTeX's name of a Greek letter from Unicode's: GREEK SMALL LETTER FINAL SIGMA -> \varsigma."""
    word = unicodedata.name(letter).replace("FINAL ", "VAR").replace("LAMDA", "LAMBDA").split()[-1]
    return rf"\{word.lower() if letter.islower() else word.capitalize()}"


MATHEMATICS = (
    {letter: f"${command(letter)}$" for letter in GREEK}
    | {letter: f"${sign}$" for letter, sign in SIGNS.items()}
    | dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΧο", "ABEZHIKMNOPTXo", strict=True))  # those that LaTeX takes from Latin
)


def set_letter(letter: str) -> str:
    """Return what prints one letter beyond ASCII."""
    if letter in MATHEMATICS:
        return MATHEMATICS[letter]
    return letter if letter in KNOWN else rf"\beyond{{{letter}}}{{[{ord(letter):X}]}}"


def composed(text: str) -> str:
    """Return the text with each letter and its accents as one character, where Unicode has one."""
    return unicodedata.normalize("NFC", text)


def beyond_pdflatex(text: str) -> list[str]:
    """Return the letters of `text` that pdflatex prints as numbers, sorted."""
    return sorted(c for c in set(composed(text)) if not c.isascii() and c not in MATHEMATICS and c not in KNOWN)
