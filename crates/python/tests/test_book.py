"""The Python samples of the book and the README: every block runs and prints the output shown."""

from __future__ import annotations

import contextlib
import io
import re
from typing import Any

import pytest
from conftest import ROOT

PAGES = {"book/src/quick-start.md": 1, "book/src/python.md": 8, "README.md": 1}
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_every_block_runs_and_prints_the_output_shown(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(ROOT)
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = BLOCK.findall(text)
    assert len(blocks) == text.count("```python") >= PAGES[page]
    names: dict[str, Any] = {"__name__": "book"}
    for number, (code, expected) in enumerate(blocks, start=1):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, f"{page}, block {number}", "exec"), names)
        found = "\n".join(line.rstrip() for line in printed.getvalue().splitlines())
        assert found == expected.rstrip("\n"), f"block {number} prints\n{found}"
