"""What the environment says about exporters."""

from __future__ import annotations

import pytest

from otel_sealed.cli.exporters import configured, others, targets


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, False),
        ({"OTEL_SERVICE_NAME": "x"}, False),
        ({"OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "console"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://collector:4318/v1/logs"}, True),
        ({"OTEL_CONFIG_FILE": "otel.yaml"}, True),
    ],
)
def test_an_exporter_is_configured_or_not(environ: dict[str, str], *, expected: bool) -> None:
    assert configured(environ) is expected


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, []),
        (
            {"OTEL_TRACES_EXPORTER": "console", "OTEL_METRICS_EXPORTER": "none"},
            ["logs localhost 4317"],
        ),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4317"},
            [f"{signal} collector 4317" for signal in ("traces", "metrics", "logs")],
        ),
        (
            {
                "OTEL_EXPORTER_OTLP_ENDPOINT": "https://user:secret@collector/x",
                "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
                "OTEL_METRICS_EXPORTER": "none",
                "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://logs/v1/logs",
            },
            ["traces collector 443", "logs logs 80"],
        ),
        (
            {"OTEL_TRACES_EXPORTER": "otlp_proto_http", "OTEL_LOGS_EXPORTER": "none"},
            ["traces localhost 4318", "metrics localhost 4317"],
        ),
        (
            {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "collector:55", "OTEL_LOGS_EXPORTER": "none"},
            ["traces collector 55", "metrics localhost 4317"],
        ),
    ],
)
def test_targets_are_host_and_port_and_nothing_secret(
    environ: dict[str, str], expected: list[str]
) -> None:
    found = [f"{target.signal} {target.host} {target.port}" for target in targets(environ)]
    assert found == expected
    assert "secret" not in "".join(map(str, targets(environ)))


def test_exporters_other_than_otlp_are_named_once() -> None:
    environ = {"OTEL_TRACES_EXPORTER": "otlp, console", "OTEL_METRICS_EXPORTER": "console,mine"}
    assert others(environ) == ("console", "mine")
