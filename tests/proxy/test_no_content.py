"""What the proxy and the hooks at HTTP clients leave behind holds no content.

The provider marks every text, and seals what it hands out; the agent loses one of two seals, so
that what breaks is written too. Everything that is left is swept: the record, the standard streams.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from otel_sealed.testing.strict import StrictProvider
from otel_sealed.testing.sweep import Sweeper

TREE = Path(__file__).parents[2]
CANARY, KEY = "heliotrope-canary-7731", "sk-ant-api03-0123456789abcdefghij"
MAIN = [sys.executable, "-c", "import sys; from otel_sealed.cli import main; sys.exit(main())"]
AGENT = """
import os, requests
url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
headers = {"x-api-key": os.environ["KEY"], "anthropic-version": "2023-06-01"}
ask = {"model": "claude-opus-4-6", "max_tokens": 4096, "tools": [{"name": "look",
       "input_schema": {"type": "object"}}], "thinking": {"type": "enabled", "budget_tokens": 1024},
       "messages": [{"role": "user", "content": os.environ["CANARY"]}]}
for _ in range(3):
    reply = requests.post(url, json=ask, headers=headers, timeout=10).json()
    if "content" not in reply:
        break
    kept = [block for block in reply["content"] if block["type"] != "redacted_thinking"]
    results = [{"type": "tool_result", "tool_use_id": block["id"], "content": os.environ["CANARY"]}
               for block in kept if block["type"] == "tool_use"]
    ask["messages"].append({"role": "assistant", "content": kept})
    ask["messages"].append({"role": "user", "content": results})
"""


@pytest.mark.parametrize("options", [["--proxy"], []], ids=["proxy", "http client"])
def test_nothing_that_is_left_holds_content(options: list[str], tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(AGENT, "utf-8")
    environ = {k: v for k, v in os.environ.items() if not k.startswith("OTEL_")}
    with StrictProvider(seed=5, canary=CANARY) as provider:
        environ |= {
            "PYTHONPATH": str(TREE),
            "ANTHROPIC_BASE_URL": provider.anthropic_url,
            "CANARY": CANARY,
            "KEY": KEY,
        }
        done = subprocess.run(
            [*MAIN, "run", *options, "--", sys.executable, "agent.py"],
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            check=False,
            timeout=60,
        )
        secrets = {f"seal {n}": one.value for n, one in enumerate(provider.minted)}
    outputs = {"stdout": done.stdout, "stderr": done.stderr}
    for path in (tmp_path / ".otel-sealed").iterdir():
        if path.is_file():
            outputs[path.name] = path.read_bytes()
    assert b"breaks" in done.stderr
    assert any(name.startswith("traces-") for name in outputs)
    assert Sweeper({**secrets, "text": CANARY, "key": KEY}).sweep(outputs) == []
