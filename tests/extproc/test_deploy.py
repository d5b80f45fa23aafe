"""The files of `deploy/envoy` are YAML, and name what is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

FILES = sorted((Path(__file__).parents[2] / "deploy" / "envoy").glob("*.yaml"))


def filters(value: Any) -> list[Any]:
    """Every configuration of the filter in a document."""
    found = []
    if isinstance(value, dict):
        if str(value.get("@type", "")).endswith("ext_proc.v3.ExternalProcessor"):
            found.append(value)
        value = list(value.values())
    for inner in value if isinstance(value, list) else ():
        found += filters(inner)
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_filter_never_makes_a_call_wait(path: Path) -> None:
    documents = list(yaml.safe_load_all(path.read_text("utf-8")))
    for found in (one for document in documents for one in filters(document)):
        assert (found["observability_mode"], found["failure_mode_allow"]) == (True, True)
        assert {
            found["processing_mode"][f"{side}_body_mode"] for side in ("request", "response")
        } == {"STREAMED"}
    policies = [d for d in documents if d.get("kind") == "EnvoyExtensionPolicy"]
    assert all(one["failOpen"] for policy in policies for one in policy["spec"]["extProc"])
    assert documents


def test_a_deployment_runs_a_command_that_there_is() -> None:
    (path,) = (path for path in FILES if path.name == "deployment.yaml")
    deployment, service = yaml.safe_load_all(path.read_text("utf-8"))
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["command"][:3] == ["otel-sealed", "extproc", "--listen"]
    port = container["ports"][0]["containerPort"]
    assert container["command"][3].endswith(f":{port}")
    assert [one["port"] for one in service["spec"]["ports"]] == [port]
