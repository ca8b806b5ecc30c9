"""Shared by the tests: the repository, and the command to compare results with."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]


def example(name: str) -> dict[str, Any]:
    """The data of an example; null is NaN."""
    found = json.loads((ROOT / "examples" / name / "data.json").read_text())
    return {key: np.array(value, dtype=float) for key, value in found.items()}


@pytest.fixture(scope="session")
def command() -> Path:
    """The command-line program, built beforehand."""
    path = Path(os.environ.get("HYPERPRIOR", ROOT / "target" / "release" / "hyperprior"))
    if not path.exists():
        pytest.fail(f"{path} does not exist; build it with cargo build --release")
    return path


@pytest.fixture(scope="session")
def run(command: Path) -> Any:
    """Runs the command in the repository and parses the JSON that it prints."""

    def run(*arguments: str) -> dict[str, Any]:
        done = subprocess.run([command, *arguments, "--json", "--quiet"], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run
