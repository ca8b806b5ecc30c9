"""Progress bars: one line on a terminal, an HTML bar in a notebook, nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable
from html import escape
from typing import Any

#: Called with the name of the work, the amount done, the total, and the bound if there is one.
Callback = Callable[[str, int, int, "float | None"], None]

_WIDTH = 24


def callback(progress: bool | Callback | None) -> Callback | None:
    """The function to report to: None if `progress` is False, or if it is None outside a terminal or notebook."""
    if callable(progress):
        return progress
    if progress is False:
        return None
    if _is_notebook():
        return _Notebook()
    if progress or sys.stderr.isatty():
        return _Terminal()
    return None


def finish(report: Callback | None) -> None:
    """Removes the progress bar."""
    if isinstance(report, (_Terminal, _Notebook)):
        report.finish()


def _is_notebook() -> bool:
    # A notebook has imported IPython already.
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None else None
    return running is not None and running.__class__.__name__ == "ZMQInteractiveShell"


def _line(work: str, done: int, of: int, elbo: float | None) -> str:
    bound = "" if elbo is None else f"  bound {elbo:.4g}"
    return f"{work} {done}/{of}{bound}"


class _Terminal:
    def __init__(self) -> None:
        self._longest = 0

    def __call__(self, work: str, done: int, of: int, elbo: float | None) -> None:
        filled = _WIDTH * done // max(of, 1)
        shown = f"[{'#' * filled}{'-' * (_WIDTH - filled)}] {_line(work, done, of, elbo)}"
        self._longest = max(self._longest, len(shown))
        sys.stderr.write("\r" + shown.ljust(self._longest))
        sys.stderr.flush()

    def finish(self) -> None:
        if self._longest:
            sys.stderr.write("\r" + " " * self._longest + "\r")
            sys.stderr.flush()


class _Notebook:
    def __init__(self) -> None:
        self._handle: Any = None

    def __call__(self, work: str, done: int, of: int, elbo: float | None) -> None:
        from IPython.display import HTML, display

        bar = f'<progress value="{done}" max="{max(of, 1)}"></progress> {escape(_line(work, done, of, elbo))}'
        if self._handle is None:
            self._handle = display(HTML(bar), display_id=True)
        else:
            self._handle.update(HTML(bar))

    def finish(self) -> None:
        if self._handle is not None:
            from IPython.display import HTML

            self._handle.update(HTML(""))
