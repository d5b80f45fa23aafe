"""An agent that is no Python, beside the proxy: what is said against the bytes the provider got.

Run by `.ci/run clients`, which installs Vercel's AI SDK by npm; elsewhere skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from otel_sealed.testing.strict import StrictProvider

HERE = Path(__file__).parent
TREE = HERE.parents[1]
NODE = shutil.which("node")
MAIN = [sys.executable, "-c", "import sys; from otel_sealed.cli import main; sys.exit(main())"]
pytestmark = pytest.mark.skipif(
    NODE is None or not (HERE / "node_modules" / "ai").is_dir(),
    reason="the AI SDK is not installed",
)


def spans(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for path in sorted((folder / ".otel-sealed").glob("traces-*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            for scope in json.loads(line)["resourceSpans"][0]["scopeSpans"]:
                found += scope["spans"]
    found.sort(key=lambda span: int(span["startTimeUnixNano"]))
    return [{a["key"]: a["value"] for a in span["attributes"]} for span in found]


@pytest.mark.parametrize("host", ["faithful", "lossy"])
@pytest.mark.parametrize("delivery", ["whole", "stream"])
@pytest.mark.parametrize("wire", ["anthropic", "openai", "google"])
def test_what_the_ai_sdk_carries_is_what_the_provider_got(
    wire: str, delivery: str, host: str, tmp_path: Path
) -> None:
    with StrictProvider(seed=3) as provider:
        environ = {k: v for k, v in os.environ.items() if not k.startswith("OTEL_")}
        environ |= {
            "PYTHONPATH": str(TREE),
            "ANTHROPIC_BASE_URL": provider.anthropic_url,
            "OPENAI_BASE_URL": provider.openai_url,
            "GOOGLE_GEMINI_BASE_URL": provider.gemini_url,
        }
        agent = [str(NODE), str(HERE / "agent.mjs"), wire, delivery, host]
        done = subprocess.run(
            [*MAIN, "run", "--proxy", "--", *agent],
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        sent = provider.exchanges[-1].request_body.decode()
        carried = sum(json.dumps(one.value)[1:-1] in sent for one in provider.minted)
        refused = provider.exchanges[-1].status != 200
    calls = spans(tmp_path)
    assert len(calls) == len(provider.exchanges), done.stderr
    last = calls[-1]
    fabricated = "fabricated" in json.dumps(last.get("otel_sealed.findings", {}))
    assert fabricated or int(last["otel_sealed.returned.count"]["intValue"]) == carried
    verdict = last["otel_sealed.verdict"]["stringValue"]
    assert (verdict == "ok", carried > 0) == (host == "faithful", host == "faithful")
    assert refused is (verdict == "breaks")
