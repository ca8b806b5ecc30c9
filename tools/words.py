#!/usr/bin/env python3
"""The vocabulary of the field: private words must not come back in public names, help, messages, the book or the README.

Checks: names of files and modules, public Rust and Python names, string literals of the Rust and Python sources outside tests, and
the prose of the book and the README. `EXCEPT` lists, by word, the texts in which it has its ordinary meaning. Exits with 1 and a list
of the places.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A word, as a regular expression, and what the field says.
PROSE = {
    r"foret(?:ell|ells|elling|old)": "predict",
    r"summed[- ]out|summing out|sums? out": "marginalise",
    r"climb(?:s|ed|ing)?": "maximise",
    r"anew": "again, resimulate",
    r"journal": "checkpoint",
    r"doubts?": "warning, diagnostic",
    r"laws?": "distribution",
    r"worth (?:no more|fewer|less|what|\d+)": "effective sample size",
    r"set aside": "held out, excluded",
    r"held? (?:against|beside)": "compare with",
    r"rungs?": "candidate",
    r"carr(?:y|ied) over": "reuse, transfer",
}
NAMES = {
    r"foretell|foretold": "predict, prediction",
    r"told": "summary, report",
    r"doubts?": "diagnostic, warning",
    r"law|laws|vector_law|any_law": "distribution",
    r"journal|sealer|sealed|begun": "checkpoint",
    r"searched": "ModeSearch",
    r"rung|rungs": "candidate",
    r"settled?": "converged",
    r"left_?out": "missed mode, LOO",
    r"beside": "reference, comparison",
    r"carry|carried": "transfer, reuse",
    r"anew": "resimulated",
    r"switched|mirror": "factorial mixture, hierarchical r",
    r"belief|room|visit": "weight posterior, memory, minibatch",
    r"paint|aside|saving": "style, held-out, save interval",
    r"climb": "maximise",
}
# Words that are ordinary as a part of a name, but not as the whole of it.
WHOLE = {
    r"course|within": "fit history, budget record",
    r"until": "schedule",
    r"between": "layer weights",
}
# Texts in which a word is not the private one.
EXCEPT = {
    "file": {
        "CHANGELOG.md",  # lists old names beside new ones
        "tools/words.py",
    },
    "laws?": ["power law", "exact law", "exact_law", "dense_law", "estimate_law", "law of large numbers", "Zipf"],
    "journal": ["journal of"],
}
def words_of(name: str) -> list[str]:
    """The words of a snake or camel name, in lower case."""
    return [w.lower() for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def strings(code: str):
    """String literals with their lines, comments left out."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|r#"(.*?)"#|"((?:\\.|[^"\\])*)"|\'(?:\\.|[^\'\\])\'', re.S)
    for match in pattern.finditer(code):
        text = match[1] or match[2]
        if text:
            yield code.count("\n", 0, match.start()) + 1, text


def prose(page: str):
    """Lines of a page outside fenced blocks, with their numbers."""
    is_code = False
    for number, line in enumerate(page.split("\n"), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code:
            yield number, line


def main() -> int:
    wrong: list[str] = []
    tracked = subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True).split("\n")
    files = [name for name in tracked if name and (ROOT / name).is_file() and name not in EXCEPT["file"]]

    def look(place: str, text: str) -> None:
        for word, better in PROSE.items():
            for match in re.finditer(rf"(?<![\w-])(?:{word})(?![\w-])", text, re.I):
                around = text[max(0, match.start() - 30) : match.end() + 30]
                if not any(allowed.lower() in around.lower() for allowed in EXCEPT.get(word, [])):
                    wrong.append(f"{place}: `{match[0]}` in “{around.strip()}”: {better}")

    def name(place: str, given: str) -> None:
        for word, better in NAMES.items():
            if any(re.fullmatch(word, part) for part in [*words_of(given), "_".join(words_of(given))]):
                wrong.append(f"{place}: the name `{given}`: {better}")
        for word, better in WHOLE.items():
            if re.fullmatch(word, given, re.I):
                wrong.append(f"{place}: the name `{given}`: {better}")

    for file in files:
        path = ROOT / file
        is_test = "/tests/" in file or path.stem in ("tests",) or path.stem.endswith("_law")
        if file.startswith("crates/") and path.suffix in (".rs", ".py") and not is_test:
            name(file, path.stem)
            text = re.split(r"\n#\[cfg\(test\)\]\nmod \w+ \{", path.read_text())[0]
            if path.suffix == ".rs":
                for match in re.finditer(r"\bpub (?:const |unsafe )?(?:fn|struct|enum|trait|mod|type|const|static) (\w+)", text):
                    name(f"{file}:{text.count(chr(10), 0, match.start()) + 1}", match[1])
                for match in re.finditer(r"\n    pub (\w+):", text):
                    name(f"{file}:{text.count(chr(10), 0, match.start()) + 2}", match[1])
                for line, said in strings(text):
                    look(f"{file}:{line}", said)
                if "/cli/src/command/" in file or file.endswith("cli/src/main.rs"):
                    for line, comment in enumerate(text.split("\n"), 1):
                        if comment.strip().startswith("/// "):
                            look(f"{file}:{line}", comment.strip()[4:])
                if re.match(r"crates/(core|graph|math|def|bugs)/", file):
                    for line, said in strings(text):
                        if re.search(r"(?<![\w-])--[a-z]", said):
                            wrong.append(f"{file}:{line}: an option of the command line in “{said[:60]}”")
        elif path.suffix == ".md":
            for line, said in prose(path.read_text()):
                look(f"{file}:{line}", re.sub(r"`[^`]*`|\]\([^)]*\)", "", said))
    for line in wrong:
        print(line)
    print(f"words: {len(wrong)} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
