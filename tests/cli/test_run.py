"""`otel-sealed run`: real programs under it, their status, signals, files and the screen."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest

pytest.importorskip("opentelemetry.exporter.otlp.json.file")
pytest.importorskip("anthropic")

from otel_sealed.cli.autorun import BOOTSTRAP, without_bootstrap
from otel_sealed.cli.records import records
from otel_sealed.cli.run import environment
from otel_sealed.cli.summary import NOTHING_SEEN, Summary, lines, summarise
from tests.otlp import Receiver

CLI = [sys.executable, "-c", "import sys; from otel_sealed.cli import main; sys.exit(main())"]
AGENT = """\
import sys
import anthropic
from otel_sealed.testing.strict import StrictProvider

TOOL = {"name": "look", "input_schema": {"type": "object", "properties": {}}}
thinking = {"type": "enabled", "budget_tokens": 1024}
ask = {"model": "claude-sonnet-4-6", "max_tokens": 4096, "thinking": thinking}


def main():
    with StrictProvider(seed=7) as provider:
        url = provider.anthropic_url
        with anthropic.Anthropic(api_key="k", base_url=url, max_retries=0) as client:
            messages = [{"role": "user", "content": "CANARY"}]
            reply = client.messages.create(**ask, tools=[TOOL], messages=messages)
            kept = [block for block in reply.content if "thinking" not in block.type]
            calls = [block.id for block in reply.content if block.type == "tool_use"]
            results = [{"type": "tool_result", "tool_use_id": c, "content": "x"} for c in calls]
            messages.append({"role": "assistant", "content": kept})
            messages.append({"role": "user", "content": results})
            try:
                client.messages.create(**ask, tools=[TOOL], messages=messages)
            except anthropic.BadRequestError:
                print("refused", *sys.argv[1:])


if __name__ == "__main__":
    main()
    sys.exit(3)
"""
CLOCK = r"\d\d:\d\d:\d\dZ"


@dataclass
class Ran:
    """One finished run."""

    status: int
    out: str
    err: str
    folder: Path

    @property
    def files(self) -> list[Path]:
        return sorted((self.folder / ".otel-sealed").glob("*.jsonl"))

    @property
    def screen(self) -> list[str]:
        """What `run` itself printed, behind what the program did."""
        found = self.err.splitlines()
        (start,) = (at for at, line in enumerate(found) if line.startswith("otel-sealed: "))
        return found[start:]


def clean(**more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "PYTHON"))}
    return {**kept, "NO_PROXY": "127.0.0.1", **more}


def run(folder: Path, *command: str, **more: str) -> Ran:
    (folder / "agent.py").write_text(AGENT, "utf-8")
    ran = subprocess.run(
        [*CLI, "run", "--", *command],
        cwd=folder,
        env=clean(**more),
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    return Ran(ran.returncode, ran.stdout, ran.stderr, folder)


@pytest.fixture(scope="module", name="ran")
def _ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return run(tmp_path_factory.mktemp("run"), sys.executable, "agent.py", "--option", "--", "x")


# ---------------------------------------------------------------------------------- an ordinary run


def test_the_program_gets_its_arguments_and_its_status_is_ours(ran: Ran) -> None:
    assert (ran.status, ran.out) == (3, "refused --option -- x\n")


def test_one_screen_says_what_was_seen(ran: Ran) -> None:
    first, loss, refusal, page, where = ran.screen
    assert first == "otel-sealed: 2 calls, 1 seal received, 0 returned"
    assert re.fullmatch(
        rf"  breaks  dropped  anthropic\.thinking\.signature  A1  1 time, first at {CLOCK}", loss
    )
    assert refusal == "the provider refused 1: thinking_missing 1"
    assert page == "what a rule says: docs/rules.md"
    assert where.startswith(f"spans, metrics and log events, without content: {ran.folder}")


def test_the_alert_is_a_log_line_too(ran: Ran) -> None:
    alerts = [line for line in ran.err.splitlines() if line.startswith("anthropic.thinking.sig")]
    assert len(alerts) == 1


def test_it_leaves_private_files_of_all_three_signals_without_content(ran: Ran) -> None:
    folder = ran.folder / ".otel-sealed"
    assert [path.name.split("-")[0] for path in ran.files] == ["logs", "metrics", "traces"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (folder / ".gitignore").read_text("utf-8") == "*\n"
    assert [path for path in ran.files if "CANARY" in path.read_text("utf-8")] == []
    names = {record.name for record in records(ran.files)}
    assert {"chat claude-sonnet-4-6", "otel_sealed.violation", "otel_sealed.calls"} <= names


def test_the_summary_is_of_this_run_alone(tmp_path: Path) -> None:
    run(tmp_path, sys.executable, "agent.py")
    again = run(tmp_path, sys.executable, "agent.py")
    assert again.screen[0] == "otel-sealed: 2 calls, 1 seal received, 0 returned"
    assert len(again.files) == 6


# ------------------------------------------------------------------------------- ways to be started


@pytest.mark.parametrize("how", ["-m", "console script", "worker", "spawn"])
def test_however_python_is_started_it_is_observed(tmp_path: Path, how: str) -> None:
    """As a module, by a script with a shebang as `uvicorn` has one, in workers of two kinds."""
    (tmp_path / "agent.py").write_text(AGENT, "utf-8")
    if how == "-m":
        command = [sys.executable, "-m", "agent"]
    else:
        body = {
            "console script": "agent.main()",
            "worker": "subprocess.run([sys.executable, 'agent.py'], check=False)",
            "spawn": (
                "context = multiprocessing.get_context('spawn')\n"
                "    worker = context.Process(target=agent.main)\n"
                "    worker.start()\n"
                "    worker.join()"
            ),
        }[how]
        script = tmp_path / "serve"
        script.write_text(
            f"#!{sys.executable}\nimport multiprocessing, subprocess, sys\n"
            f"sys.path.insert(0, '.')\nimport agent\nif __name__ == '__main__':\n    {body}\n",
            "utf-8",
        )
        script.chmod(0o755)
        command = [str(script)]
    ran = run(tmp_path, *command)
    assert ran.out == "refused\n"
    assert ran.screen[0] == "otel-sealed: 2 calls, 1 seal received, 0 returned"


def test_a_hidden_sitecustomize_still_runs_and_the_path_is_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("mark = 'mine'", "utf-8")
    code = "import sys, sitecustomize; print(sitecustomize.mark, *sys.path, sep='\\n')"
    ran = run(tmp_path, sys.executable, "-c", code, PYTHONPATH=str(tmp_path / "site"))
    mark, *path = ran.out.splitlines()
    assert mark == "mine"
    assert str(tmp_path / "site") in path
    assert str(BOOTSTRAP) not in path
    assert ran.files == []


def test_a_sitecustomize_that_fails_fails_as_before(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("1 / 0", "utf-8")
    ran = run(tmp_path, sys.executable, "agent.py", PYTHONPATH=str(tmp_path / "site"))
    assert ran.err.startswith("Error in sitecustomize; set PYTHONVERBOSE for traceback:\nZeroDiv")
    assert (ran.status, ran.out) == (3, "refused\n")
    assert ran.screen[0] == "otel-sealed: 2 calls, 1 seal received, 0 returned"


def test_the_environment_of_the_program() -> None:
    given = {"PYTHONPATH": f"a{os.pathsep}b", "X": "1"}
    made = environment(given, Path("/folder"), "now")
    assert made == {
        "PYTHONPATH": os.pathsep.join([str(BOOTSTRAP), "a", "b"]),
        "X": "1",
        "OTEL_SEALED_FOLDER": "/folder",
        "_OTEL_SEALED_RUN": "now",
    }
    assert environment(made, Path("/folder"), "now") == made
    assert without_bootstrap(made["PYTHONPATH"]) == given["PYTHONPATH"]
    assert environment({}, Path("/folder"), "now")["PYTHONPATH"] == str(BOOTSTRAP)


# ------------------------------------------------------------------- where telemetry goes otherwise


def test_with_an_exporter_in_the_environment_it_is_zero_code(tmp_path: Path) -> None:
    with Receiver() as receiver:
        ran = run(
            tmp_path,
            sys.executable,
            "agent.py",
            OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url,
            OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
        )
    assert (ran.status, ran.out, ran.files) == (3, "refused\n", [])
    assert ran.screen == [
        "otel-sealed: telemetry went to the exporter that the environment configures"
    ]
    assert len([span for span in receiver.spans if "otel_sealed.carry" in span]) == 2
    assert [e["name"] for e in receiver.events].count("otel_sealed.violation") == 1
    assert receiver.sums("otel_sealed.violations", "otel_sealed.verdict")["breaks"] == 1


def test_so_it_is_without_the_launchers_package(tmp_path: Path) -> None:
    """The SDK is configured as its environment says, and we are put on."""
    hide = "import sys; sys.modules['opentelemetry.instrumentation'] = None"
    (tmp_path / "sitecustomize.py").write_text(hide, "utf-8")
    with Receiver() as receiver:
        ran = run(
            tmp_path,
            sys.executable,
            "agent.py",
            PYTHONPATH=str(tmp_path),
            OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url,
            OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
        )
    assert ran.out == "refused\n"
    assert len([span for span in receiver.spans if "otel_sealed.carry" in span]) == 2
    assert [e["name"] for e in receiver.events].count("otel_sealed.violation") == 1


def test_what_the_program_sets_up_itself_stays_its_own(tmp_path: Path) -> None:
    """Its span of the call is enriched, and in the folder there is what we wrote on it, no more."""
    code = (
        "import agent\n"
        "from opentelemetry import trace\n"
        "from opentelemetry.sdk.trace import TracerProvider\n"
        "from opentelemetry.sdk.trace.export import SimpleSpanProcessor\n"
        "from opentelemetry.sdk.trace.export.in_memory_span_exporter import *\n"
        "mine = InMemorySpanExporter()\n"
        "provider = TracerProvider()\n"
        "provider.add_span_processor(SimpleSpanProcessor(mine))\n"
        "trace.set_tracer_provider(provider)\n"
        "agent.main()\n"
        "spans = mine.get_finished_spans()\n"
        "print(sum('otel_sealed.carry' in span.attributes for span in spans), len(spans))\n"
    )
    ran = run(tmp_path, sys.executable, "-W", "error", "-c", code, ANTHROPIC_OPEN_TELEMETRY="true")
    refused, counts = ran.out.splitlines()
    assert (ran.status, refused) == (0, "refused")
    enriched = int(counts.split()[0])
    (traces,) = (path for path in ran.files if path.name.startswith("traces-"))
    spans = [json.loads(line) for line in traces.read_text("utf-8").splitlines()]
    calls = [record for record in records([traces]) if "otel_sealed.carry" in record.attributes]
    assert enriched == 2
    assert len(calls) == len(spans) == 2
    keys = {key for record in calls for key in record.attributes}
    assert {key for key in keys if not key.startswith(("otel_sealed.", "gen_ai."))} == set()


@pytest.mark.parametrize(
    "switch",
    [
        {"OTEL_SEALED_ENABLED": "false"},
        {"OTEL_SDK_DISABLED": "true"},
        {"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "otel_sealed"},
    ],
    ids=lambda switch: next(iter(switch)),
)
def test_switched_off_the_program_runs_as_it_would(tmp_path: Path, switch: dict[str, str]) -> None:
    ran = run(tmp_path, sys.executable, "agent.py", **switch)
    (name,) = switch
    assert (ran.status, ran.out) == (3, "refused\n")
    assert ran.err == f"otel-sealed: switched off ({name})\n"
    assert ran.files == []


def test_a_disk_that_takes_nothing_costs_one_line_and_the_program_is_unharmed(
    tmp_path: Path,
) -> None:
    (tmp_path / ".otel-sealed").write_text("in the way", "utf-8")
    ran = run(tmp_path, sys.executable, "agent.py")
    assert (ran.status, ran.out) == (3, "refused\n")
    lost = [line for line in ran.err.splitlines() if "telemetry is lost" in line]
    assert lost == [
        f"{tmp_path / '.otel-sealed'}: File exists; telemetry is lost, the program goes on"
    ]
    assert ran.screen == [f"otel-sealed: no call was observed; {NOTHING_SEEN}"]


def test_the_folder_is_a_setting(tmp_path: Path) -> None:
    ran = run(tmp_path, sys.executable, "agent.py", OTEL_SEALED_FOLDER="else/where")
    assert len(list((tmp_path / "else" / "where").glob("*.jsonl"))) == 3
    assert ran.screen[0] == "otel-sealed: 2 calls, 1 seal received, 0 returned"


# ------------------------------------------------------------------------------ status and signals


@pytest.mark.parametrize(
    ("command", "status", "says"),
    [
        (["no-such-program"], 127, "otel-sealed: no-such-program: No such file or directory\n"),
        (["./agent.py"], 126, "otel-sealed: ./agent.py: Permission denied\n"),
    ],
)
def test_a_program_that_cannot_be_run_is_one_line(
    tmp_path: Path, command: list[str], status: int, says: str
) -> None:
    ran = run(tmp_path, *command)
    assert (ran.status, ran.out, ran.err) == (status, "", says)


WAITS = """\
import os, signal, sys
names = sys.argv[1:]
def handler(number, frame):
    os.write(1, signal.Signals(number).name.encode() + b"\\n")
    sys.exit(7)
for name in names:
    signal.signal(getattr(signal, name), handler)
print("ready", flush=True)
while True:
    signal.pause()
"""


@pytest.fixture(name="waiting")
def _waiting(tmp_path: Path) -> Iterator[Any]:
    """Starts a program that waits for signals, under `run`."""
    started: list[subprocess.Popen[str]] = []

    def start(*names: str) -> tuple[subprocess.Popen[str], IO[str]]:
        child = subprocess.Popen(
            [*CLI, "run", sys.executable, "-c", WAITS, *names],
            cwd=tmp_path,
            env=clean(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        return child, child.stdout

    yield start
    for child in started:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # the program, too: it holds the pipes open
        child.communicate()


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1"])
def test_a_signal_reaches_the_program_and_its_answer_is_the_status(waiting: Any, name: str) -> None:
    child, out = waiting(name)
    child.send_signal(getattr(signal, name))
    assert out.readline() == f"{name}\n"
    _, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (7, f"otel-sealed: no call was observed; {NOTHING_SEEN}\n")


def test_a_program_that_a_signal_ends_gives_128_and_its_number(waiting: Any) -> None:
    child, _ = waiting()
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=60)
    assert child.returncode == 128 + signal.SIGTERM


# -------------------------------------------------------------------------------------- the screen


def test_the_screen_is_one_screen_however_much_was_lost() -> None:
    summary = Summary(calls=1000, received=20, returned=10)
    for number in range(40):
        key = ("breaks" if number % 2 else "degrades", "dropped", f"a.b{number}", "A1", "")
        summary.losses[key], summary.first[key] = number + 1, number * 10**9
    summary.refusals.update({f"class_{n}": n + 1 for n in range(20)})
    shown = lines(summary)
    assert len(shown) == 17
    assert shown[0] == "1,000 calls, 20 seals received, 10 returned"
    assert shown[1] == "  breaks    dropped  a.b1   A1  2 times, first at 00:00:01Z"
    assert shown[15] == "  and 26 more kinds"
    assert shown[16].startswith("the provider refused 210: class_19 20, class_18 19")
    assert all(len(line) < 160 for line in shown)


def test_without_a_loss_it_says_so(tmp_path: Path) -> None:
    assert lines(Summary(calls=1)) == [
        "1 call, 0 seals received, 0 returned",
        "nothing degrades or breaks",
    ]
    assert lines(summarise([])) == [f"no call was observed; {NOTHING_SEEN}"]
    (tmp_path / "x.jsonl").write_text("rubbish\n", "utf-8")
    assert lines(summarise([tmp_path / "x.jsonl"])) == [f"no call was observed; {NOTHING_SEEN}"]


PASSES_BY = """\
import json
import urllib.request
from otel_sealed.testing.strict import StrictProvider

with StrictProvider(seed=7) as provider:
    hello = {"role": "user", "content": "CANARY"}
    ask = {"model": "claude-opus-5", "max_tokens": 4096, "messages": [hello]}
    headers = {"x-api-key": "CANARY", "anthropic-version": "2023-06-01"}
    for _ in range(2):
        request = urllib.request.Request(
            f"{provider.anthropic_url}/v1/messages",
            json.dumps(ask).encode(),
            {"content-type": "application/json", **headers},
        )
        urllib.request.urlopen(request).read()
"""


ONE_CALL = """
    import anthropic

    with anthropic.Anthropic(api_key="k", base_url=provider.anthropic_url) as client:
        client.messages.create(**ask)
"""


def test_calls_that_go_past_the_sdks_are_named(tmp_path: Path) -> None:
    """Nothing was observed, and it is said why."""
    script = tmp_path / "passes_by.py"
    script.write_text(PASSES_BY)
    ran = run(tmp_path, sys.executable, str(script))
    assert ran.status == 0, ran.err
    said = (
        "2 requests with turns of a model passed unobserved, so nothing can be said of them"
        " (`otel-sealed doctor` says why):"
    )
    assert ran.screen[:3] == [
        f"otel-sealed: no call was observed; {NOTHING_SEEN}",
        said,
        "  2 to 127.0.0.1 by http.client",
    ]
    assert ran.err.count("calls of models over http.client to 127.0.0.1 pass unobserved") == 1
    assert "CANARY" not in ran.err


def test_a_call_that_went_well_says_nothing_of_those_that_go_past_the_sdks(tmp_path: Path) -> None:
    script = tmp_path / "passes_by.py"
    script.write_text(PASSES_BY + ONE_CALL)
    ran = run(tmp_path, sys.executable, str(script))
    assert ran.status == 0, ran.err
    assert ran.screen[1] == "nothing degrades or breaks in the 1 of 3 calls that was judged in full"
    assert ran.screen[3] == "  2 to 127.0.0.1 by http.client"
