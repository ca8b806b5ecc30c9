#!/usr/bin/env python3
"""Structure of the crates: no circle of files, no upward import, no long function or file, no large file in the repository.

A function of more than 80 lines, or a file of more than 400 outside its tests, must say why in its documentation, in a sentence that
says "long because". Exits with 1 and a list of the places where something is wrong.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FUNCTION_MAX, FILE_MAX, BYTES_MAX, TREE_MAX = 80, 400, 1_000_000, 15_000_000
# Tracked files that may be larger than a megabyte.
LARGE: set[str] = set()
# From the ground up: a file imports nothing from a later floor.
FLOORS = {
    "core": [
        ["error", "json"],
        ["model"],
        ["gibbs"],
        ["likelihood", "prior", "recursive", "variational"],
        ["objective", "exact"],
        ["gradient", "optimizer", "checkpoint"],
        ["observer", "session"],
        ["fit", "plate", "many", "targets"],
        ["posterior", "diagnostics", "infer"],
        ["report"],
    ],
}
DEFINES = re.compile(r"\b(?:struct|enum|trait|fn|const|static|type|mod|union|macro_rules!)\s+(\w+)")


def without_tests(text: str) -> str:
    """The code without its test module, comments and strings."""
    text = re.split(r"\n#\[cfg\((?:test|doctest)\)\]\n(?:#\[allow\(.*\)\]\n)?mod \w+ \{", text)[0]
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r'"(?:\\.|[^"\\])*"', '""', text)


def tree(text: str) -> list[list[str]]:
    """The paths of a use declaration, braces spread out."""
    text = re.sub(r"\s+as\s+\w+", "", text).strip()
    at = text.find("{")
    if at < 0:
        return [[part.strip() for part in text.split("::") if part.strip()]]
    head = [part.strip() for part in text[:at].split("::") if part.strip()]
    parts, depth, begin = [], 0, at + 1
    for i, letter in enumerate(text[at:], at):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 1 or depth == 0:
            parts.append(text[begin:i])
            begin = i + 1
        if depth == 0:
            break
    return [head + path for part in parts if part.strip() for path in tree(part)]


class Crate:
    def __init__(self, folder: Path) -> None:
        self.name, self.src = folder.name, folder / "src"
        self.files: dict[tuple[str, ...], Path] = {}
        for path in sorted(self.src.rglob("*.rs")):
            module = list(path.relative_to(self.src).with_suffix("").parts)
            if module[-1] in ("mod", "lib", "main"):
                module.pop()
            self.files[tuple(module)] = path
        self.code = {module: without_tests(path.read_text()) for module, path in self.files.items()}
        self.defined = {module: set(DEFINES.findall(code)) for module, code in self.code.items()}
        self.used: dict[tuple[str, ...], list[list[str]]] = {}
        self.public: dict[tuple[str, ...], list[list[str]]] = {}
        for module, code in self.code.items():
            all_used = re.findall(r"(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", code)
            self.used[module] = [path for public, text in all_used if not public for path in tree(text)]
            self.public[module] = [path for public, text in all_used if public for path in tree(text)]
            rest = re.sub(r"\buse\s+[^;]+;", "", code)
            self.used[module] += [m.split("::") for m in re.findall(r"\b(?:crate|super)(?:::\w+)+", rest)]
            children = {m[-1] for m in self.files if m[:-1] == module and m}
            self.used[module] += [["self", a, b] for a, b in re.findall(r"(?<![:\w])(\w+)::(\w+)", rest) if a in children]

    def absolute(self, module: tuple[str, ...], path: list[str]) -> list[str] | None:
        """A path from the crate's root; nothing where it leads out of the crate."""
        at = list(module)
        if path[0] == "crate":
            return path[1:]
        if path[0] == "self":
            return at + path[1:]
        if path[0] == "super":
            while path and path[0] == "super":
                at, path = at[:-1], path[1:]
            return at + path
        return at + path if (*module, path[0]) in self.files or path[0] in self.defined[module] else None

    def home(self, path: list[str], seen: frozenset = frozenset()) -> tuple[str, ...] | None:
        """The module whose file defines what an absolute path names."""
        module: tuple[str, ...] = ()
        rest = list(path)
        while rest and (*module, rest[0]) in self.files:
            module, rest = (*module, rest[0]), rest[1:]
        if not rest or rest[0] in self.defined[module] or (module, rest[0]) in seen:
            return module
        for public in self.public[module]:
            if public[-1] in (rest[0], "*"):
                leads = self.absolute(module, public[:-1] + [rest[0]])
                if leads is not None:
                    return self.home(leads, seen | {(module, rest[0])})
        return module

    def arrows(self) -> dict[tuple[str, ...], set[tuple[str, ...]]]:
        out: dict[tuple[str, ...], set[tuple[str, ...]]] = {module: set() for module in self.files}
        for module, paths in self.used.items():
            for path in paths:
                leads = self.absolute(module, path)
                home = self.home(leads) if leads is not None else None
                if home is not None and home != module and not path[-1] == "*":
                    out[module].add(home)
        return out


def circles(arrows: dict) -> list[list]:
    """Strongly connected sets of more than one file (Tarjan, 1972)."""
    number, low, stack, on, found = {}, {}, [], set(), []

    def visit(v) -> None:
        number[v] = low[v] = len(number)
        stack.append(v)
        on.add(v)
        for w in sorted(arrows[v]):
            if w not in number:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in on:
                low[v] = min(low[v], number[w])
        if low[v] == number[v]:
            group = []
            while True:
                w = stack.pop()
                on.discard(w)
                group.append(w)
                if w == v:
                    break
            if len(group) > 1:
                found.append(sorted(group))

    for v in sorted(arrows):
        if v not in number:
            visit(v)
    return found


def functions(text: str):
    """The name, first line and length of every function outside test modules, with whether its documentation says why it is long."""
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if re.match(r"#\[cfg\(test\)\]", line) and at + 1 < len(lines) and lines[at + 1].startswith("mod "):
            break
        match = re.match(r"(\s*)(?:pub(?:\([^)]*\))? )?(?:const )?(?:unsafe )?(?:extern \"C\" )?fn (\w+)", line)
        if not match:
            continue
        end = next((i for i in range(at, len(lines)) if lines[i] == match[1] + "}"), at)
        before = at
        while before > 0 and lines[before - 1].strip().startswith(("///", "#[")):
            before -= 1
        yield match[2], at + 1, end - at + 1, "long because" in " ".join(lines[before:at]).lower()


def main() -> int:
    wrong: list[str] = []
    sys.setrecursionlimit(10_000)
    for folder in sorted((ROOT / "crates").iterdir()):
        crate = Crate(folder)
        arrows = crate.arrows()
        show = lambda module: str(crate.files[module].relative_to(ROOT))
        for group in circles(arrows):
            ties = [f"{show(a)} -> {show(b)}" for a in group for b in sorted(arrows[a]) if b in group]
            wrong.append("a circle of files:\n    " + "\n    ".join(ties))
        floors = {room: number for number, rooms in enumerate(FLOORS.get(crate.name, [])) for room in rooms}
        for module, leads in arrows.items():
            for home in leads:
                if module and home and floors.get(home[0], -1) > floors.get(module[0], 99):
                    wrong.append(f"an upward import: {show(module)} -> {show(home)}")
        tests = [
            (*module, name)
            for module, path in crate.files.items()
            for name in re.findall(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))? )?mod (\w+);", path.read_text())
        ]
        for module, path in crate.files.items():
            text = path.read_text()
            if any(module[: len(test)] == test for test in tests):
                continue
            body = re.split(r"\n#\[cfg\(test\)\]\nmod \w+ \{", text)[0]
            head = "\n".join(line for line in text.split("\n")[:40] if line.startswith("//!"))
            if body.count("\n") > FILE_MAX and "long because" not in head.lower():
                wrong.append(f"{show(module)} has {body.count(chr(10))} lines")
            for name, line, length, is_explained in functions(text):
                if length > FUNCTION_MAX and not is_explained:
                    wrong.append(f"{show(module)}:{line}: `{name}` has {length} lines")
    tracked = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True).split("\0")
    sizes = {name: (ROOT / name).stat().st_size for name in tracked if name and (ROOT / name).is_file()}
    wrong += [f"{name} is tracked and has {size} bytes" for name, size in sizes.items() if size > BYTES_MAX and name not in LARGE]
    if sum(sizes.values()) > TREE_MAX:
        wrong.append(f"the tracked files have {sum(sizes.values())} bytes together")
    for line in wrong:
        print(line)
    print(f"structure: {len(wrong)} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
