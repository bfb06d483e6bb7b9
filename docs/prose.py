"""Check the prose of all pages, and the words of docstrings, comments and messages.

python docs/prose.py            lists faults, and exits with 1 if there are any
python docs/prose.py --long     also lists the sentences of more than 30 words

- Turns that are hard to read for people whose first language is not English do not occur.
- Lines of Markdown have at most 120 characters, except in tables and for links.
- At most 5 % of the sentences of a page, and of all pages, have more than 30 words.
"""

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "docs").rglob("*.rst"))]
CODE = [path for folder in ("src", "examples", "reproduction", "benchmarks") for path in (ROOT / folder).rglob("*.py*")]
GENERATED = ("docs/api/generated", "docs/gallery")
TURNS = ("anew", "alike", "let go", "lets go", "at hand", "come to", "comes to", "came to", "hold to", "holds to")
TURNS += (
    "thereof",
    "wherein",
    "whence",
    "hitherto",
    "henceforth",
    "albeit",
    "amidst",
    "whilst",
    "in the end byte by byte",
)
TURN = re.compile(rf"\b({'|'.join(TURNS)})\b", re.IGNORECASE)
LONGEST_LINE, LONG_SENTENCE, LARGEST_SHARE = 120, 30, 0.05


def paragraphs(text: str) -> Iterator[str]:
    """Running text: without code, tables, headings, directives, comments and formulas; items of lists one by one."""
    text = re.sub(r"^(```|~~~).*?^\1.*?$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--.*?-->|\$\$.*?\$\$", "", text, flags=re.DOTALL)
    text = re.sub(r"^:{3,}\{(toctree|include|autosummary)\}.*?^:{3,}$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^(#.*|\|.*|:.*|!\[.*|\.\. .*|   \S.*|[=~-]{3,})$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^\s*([-*]|\d+\.) ", "\n", text, flags=re.MULTILINE)
    for part in re.split(r"\n\s*\n", text):
        words = " ".join(re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", part).split())
        if words:
            yield words


def sentences(text: str) -> Iterator[str]:
    """Sentences, which end before a space and a capital, a digit, a quotation mark or code."""
    for part in paragraphs(text):
        yield from re.split(r"(?<=[.!?:])\)? (?=[A-Z0-9\"'`*(<])", part)


def is_long(sentence: str) -> bool:
    """Whether a sentence has too many words; numbers and symbols do not count."""
    return len(re.findall(r"[A-Za-z][\w'-]*", sentence)) > LONG_SENTENCE


def lines_of_prose(path: Path) -> set[int]:
    """The numbers of lines with words: all of a page, those with comments or texts of a program."""
    text = path.read_text()
    if path.suffix != ".py":
        return set(range(1, text.count("\n") + 2)) if path.suffix in (".md", ".rst", ".pyx") else set()
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            found.update(range(token.start[0], token.end[0] + 1))
    return found


def faults() -> Iterator[str]:
    """What is wrong, one line for each."""
    for path in (*PAGES, *CODE):
        name = str(path.relative_to(ROOT))
        if name.startswith(GENERATED) or not path.is_file():
            continue
        fenced, lines = False, lines_of_prose(path)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            fenced ^= line.startswith("```")
            for found in TURN.finditer(line if number in lines and not fenced else ""):
                yield f"{name}:{number}: {found[0]!r} is not plain English"
            words = re.sub(r"\]\([^)]*\)", "]", line)  # an address counts nothing
            if path.suffix == ".md" and len(words) > LONGEST_LINE and not line.startswith("|") and not fenced:
                yield f"{name}:{number}: {len(line)} characters; the limit is {LONGEST_LINE}"


def shares() -> dict[str, tuple[int, int]]:
    """Long sentences and all sentences of each page."""
    found = {}
    for path in PAGES:
        name = str(path.relative_to(ROOT))
        if not name.startswith(GENERATED):
            all_of_them = list(sentences(path.read_text()))
            found[name] = (sum(map(is_long, all_of_them)), len(all_of_them))
    return found


def main() -> int:
    """Print faults and shares."""
    wrong = list(faults())
    for name, (n_long, n_all) in shares().items():
        if n_long > max(LARGEST_SHARE * n_all, 1):
            wrong.append(f"{name}: {n_long} of {n_all} sentences have more than {LONG_SENTENCE} words")
    if "--long" in sys.argv:
        for path in PAGES:
            if not str(path.relative_to(ROOT)).startswith(GENERATED):
                for sentence in filter(is_long, sentences(path.read_text())):
                    print(f"{path.relative_to(ROOT)}: {sentence}\n")
    n_long, n_all = map(sum, zip(*shares().values(), strict=True))
    print(*wrong, f"{n_long} of {n_all} sentences ({n_long / n_all:.1%}) are long.", sep="\n")
    return bool(wrong) or n_long > LARGEST_SHARE * n_all


if __name__ == "__main__":
    sys.exit(main())
