"""The commands. Each is a thin door: what it does stands in the module of its name."""

from __future__ import annotations

from importlib import metadata
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    # a pretty traceback shows local variables, and those hold what was read
    pretty_exceptions_enable=False,
    help="Know that sealed model state came back byte-exact, without recording it.",
)

_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")]
# which incidents: the same for triage and report
_Since = Annotated[str, typer.Option(metavar="TIME", help="2h, or a date and time.")]
_Until = Annotated[str, typer.Option(metavar="TIME", help="The same.")]
_Conversation = Annotated[str, typer.Option(metavar="KEY", help="Beginning of a key.")]
_Provider = Annotated[str, typer.Option(metavar="NAME", help="As telemetry names it.")]
_Model = Annotated[str, typer.Option(metavar="NAME", help="Part of a name.")]
_Fate = Annotated[str, typer.Option(metavar="FATE", help="Such as dropped.")]
_Incident = Annotated[str, typer.Option(metavar="ID", help="Beginning of an id.")]
_Upstream = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=URL", help="One more upstream, or another for a known name."),
]
_Known = Annotated[bool, typer.Option("--known", help="Known losses, too.")]


def _version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    if wanted:
        typer.echo(f"otel-sealed {metadata.version('otel-sealed')}")
        raise typer.Exit


@app.callback()
def _root(
    *,
    _wanted: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Nothing but the options of all commands."""


@app.command()
def demo(
    *,
    as_json: _Json = False,
    traffic: Annotated[
        bool, typer.Option("--traffic", help="Go on and on, for dashboards and alerts.")
    ] = False,
    duration: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help="End traffic after that.")
    ] = None,
    rate: Annotated[
        float, typer.Option(min=0.01, max=100, help="Most conversations a second.")
    ] = 2.0,
    scrape: Annotated[
        int | None,
        typer.Option(min=0, max=65535, metavar="PORT", help="Serve Prometheus on loopback."),
    ] = None,
    otlp: Annotated[str, typer.Option(metavar="URL", help="Send OTLP over HTTP there.")] = "",
    faithful: Annotated[
        bool, typer.Option("--faithful", help="Traffic that loses nothing.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Order of the hosts in traffic.")] = 0,
) -> None:
    """Run the real SDKs against a strict local provider and show what hosts lose.

    Needs no network and no key. Leaves spans, metrics and log events under .otel-sealed/; with
    --traffic sends them on instead, until Ctrl-C.
    """
    if not traffic:
        from otel_sealed.cli import demo as door

        raise typer.Exit(door.run(as_json=as_json))
    from otel_sealed.cli import traffic as endless

    wanted = endless.Wanted(duration, rate, scrape, otlp, faithful, seed)
    raise typer.Exit(endless.run(wanted, as_json=as_json))


@app.command()
def verify(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...", help="Transcripts, VCR cassettes, HAR or mitmproxy files."
        ),
    ],
    *,
    families: Annotated[
        str,
        typer.Option(
            envvar="OTEL_SEALED_FAMILIES",
            metavar="FILE",
            help="TOML file of models that read what others sealed.",
        ),
    ] = "",
    as_json: _Json = False,
) -> None:
    """Judge recorded exchanges: did every sealed value come back as it was received?

    Exit status: 0 nothing degrades or breaks, 1 something does, 2 unusable input.
    """
    from otel_sealed.cli import verify as door

    raise typer.Exit(door.run(files, families=families, as_json=as_json))


@app.command()
def sessions(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A session file, or a folder.")],
    *,
    as_json: _Json = False,
) -> None:
    """Say what the session files of Claude Code or Codex keep of the model's reasoning.

    Counts and sizes only. Exit status: 0 every seal is on file, 1 some are not, 2 unusable input.
    """
    from otel_sealed.cli import sessions as door

    raise typer.Exit(door.run(path, as_json=as_json))


@app.command()
def inspect(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A response; - reads stdin.")],
    *,
    as_json: _Json = False,
) -> None:
    """Show the blocks of one response, the seals in them and their sizes; no content."""
    from otel_sealed.cli import inspect as door

    raise typer.Exit(door.run(file, as_json=as_json))


@app.command()
def provider(
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free port.")] = 0,
    *,
    verify_signed_text: Annotated[
        bool, typer.Option("--verify-signed-text", help="Refuse signed thinking that was edited.")
    ] = False,
) -> None:
    """Serve the strict provider on loopback and print its base URL, until Ctrl-C."""
    from otel_sealed.cli import provider as door

    raise typer.Exit(door.run(port, verify_signed_text=verify_signed_text))


@app.command(context_settings={"allow_interspersed_args": False})
def run(
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND...", help="A program and its arguments.")
    ],
    *,
    proxy: Annotated[
        bool, typer.Option("--proxy", help="Beside a program in any language: a reverse proxy.")
    ] = False,
    upstream: _Upstream = None,
) -> None:
    """Run a program observed, without a change to it, and sum up what was seen.

    A Python program is observed inside. With --proxy any program is, whose client reads its base
    URL from ANTHROPIC_BASE_URL, OPENAI_BASE_URL or GOOGLE_GEMINI_BASE_URL, or is given one of
    {anthropic}, {openai}, {gemini} in COMMAND.

    Records into .otel-sealed/ unless the environment configures an OpenTelemetry exporter. The exit
    status is that of the program.
    """
    if proxy:
        from otel_sealed.cli import proxy as beside

        raise typer.Exit(beside.beside(command, upstream or ()))
    from otel_sealed.cli import run as door

    raise typer.Exit(door.run(command))


@app.command()
def proxy(
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free port.")] = 0,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; loopback unless you say.")
    ] = "127.0.0.1",
    upstream: _Upstream = None,
    service: Annotated[str, typer.Option(metavar="NAME", help="service.name of what calls.")] = "",
) -> None:
    """Serve a reverse proxy that observes what passes, until Ctrl-C.

    It passes bytes on unchanged to Anthropic, OpenAI, Gemini and what --upstream names, and to
    nothing else. No content and no credential is logged or recorded.
    """
    from otel_sealed.cli import proxy as door

    raise typer.Exit(door.serve(host, port, upstream or (), service))


@app.command()
def extproc(
    *,
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where Envoy finds it.")
    ] = "127.0.0.1:50051",
    service: Annotated[str, typer.Option(metavar="NAME", help="service.name of what calls.")] = "",
) -> None:
    """Serve an external processor for Envoy that observes what passes a gateway, until Ctrl-C.

    Envoy sends copies (observability_mode) and does not wait. See deploy/envoy.
    """
    from otel_sealed.cli import extproc as door

    raise typer.Exit(door.serve(listen, service))


@app.command()
def baseline(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="OTLP JSON lines.")],
    *,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="Added to; - is stdout.")
    ] = "known.toml",
) -> None:
    """Write what was lost in a recorded run as a file of losses accepted for 90 days."""
    from otel_sealed.cli import baseline as door

    raise typer.Exit(door.run(paths, output))


@app.command()
def triage(  # noqa: PLR0913 - one option each
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH...]",
            help="Folders and files of a record or of a backend; - reads stdin. Default: the folder"
            " of otel-sealed run.",
        ),
    ] = None,
    *,
    error: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="What the provider said; - reads stdin. Not kept."),
    ] = None,
    since: _Since = "",
    until: _Until = "",
    conversation: _Conversation = "",
    trace: Annotated[str, typer.Option(metavar="ID", help="A trace id.")] = "",
    provider: _Provider = "",
    model: _Model = "",
    fate: _Fate = "",
    incident: _Incident = "",
    known: _Known = False,
    tempo: Annotated[str, typer.Option(metavar="URL", help="Ask Tempo for --trace.")] = "",
    header: Annotated[
        list[str] | None, typer.Option(metavar="NAME:VALUE", help="Sent to Tempo.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Most incidents shown.")] = 50,
    processes: Annotated[int, typer.Option(min=1, max=64, help="That read files.")] = 2,
    as_json: _Json = False,
) -> None:
    """Say what a record tells of as incidents, or what a provider's error is about.

    Reads OTLP JSON lines, Tempo, Jaeger, Loki, Grafana and ClickHouse, gzipped or not, and what
    verify reads: transcripts, VCR cassettes, HAR and mitmproxy files.

    Exit status: 0 nothing found, 1 something, 2 unusable input.
    """
    from otel_sealed.cli import triage as door

    wanted = door.asked_filter(
        since=since,
        until=until,
        conversation=conversation,
        trace=trace,
        provider=provider,
        model=model,
        fate=fate,
        incident=incident,
        known=known,
    )
    asked = door.Asked(
        paths=tuple(paths or ()),
        wanted=wanted,
        error=error,
        tempo=tempo,
        headers=tuple(header or ()),
        limit=limit,
        processes=processes,
        as_json=as_json,
    )
    raise typer.Exit(door.run(asked))


@app.command()
def report(  # noqa: PLR0913 - one option each
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATH...]", help="As for triage."),
    ] = None,
    *,
    html: Annotated[str, typer.Option(metavar="FILE", help="The page; - is stdout.")],
    since: _Since = "",
    until: _Until = "",
    conversation: _Conversation = "",
    provider: _Provider = "",
    model: _Model = "",
    fate: _Fate = "",
    incident: _Incident = "",
    known: _Known = False,
    limit: Annotated[int, typer.Option(min=1, help="Most incidents told.")] = 1000,
) -> None:
    """Write the incidents of a record as one page that can be shared: no content, no network.

    Exit status: 0 nothing is broken, 1 something is, 2 unusable input.
    """
    from otel_sealed.cli import report as door
    from otel_sealed.cli import triage

    wanted = triage.asked_filter(
        since=since,
        until=until,
        conversation=conversation,
        provider=provider,
        model=model,
        fate=fate,
        incident=incident,
        known=known,
    )
    asked = triage.Asked(paths=tuple(paths or ()), wanted=wanted, limit=limit)
    raise typer.Exit(door.run(asked, html))


@app.command()
def doctor(*, as_json: _Json = False) -> None:
    """Say what would be observed here, where it would go, and what there is to mend.

    Exit status: 0 nothing to mend, 1 something.
    """
    from otel_sealed.cli import doctor as door

    raise typer.Exit(door.run(as_json=as_json))
