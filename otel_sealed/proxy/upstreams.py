"""Where a request goes that came to the proxy, and how clients are pointed at it.

Model. The first part of a path names an upstream; the rest is what the client would have sent it.
There are three by default, one for each SDK whose base URL is read from a variable. Where such a
variable is set already, its value is the upstream: what a client would have called without us. No
other host is reachable, and what a client asks for never chooses one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from otel_sealed.errors import SealedError


@dataclass(frozen=True, slots=True)
class Known:
    """An upstream by default: its name, its base URL, and the variables that clients read."""

    name: str
    base: str
    variables: tuple[str, ...]


KNOWN: Final = (
    Known("anthropic", "https://api.anthropic.com", ("ANTHROPIC_BASE_URL",)),
    Known("openai", "https://api.openai.com/v1", ("OPENAI_BASE_URL", "OPENAI_API_BASE")),
    Known("gemini", "https://generativelanguage.googleapis.com", ("GOOGLE_GEMINI_BASE_URL",)),
)
_REMEDY: Final = "give NAME=URL, such as azure=https://mine.openai.azure.com/openai"


class Upstreams:
    """The upstreams of one proxy, by name."""

    def __init__(self, environ: Mapping[str, str], named: Iterable[str] = ()) -> None:
        """`named`: further ones, or others for known names, as `NAME=URL`.

        Raises:
            SealedError: One is no such pair, or its URL is not one of http or https.
        """
        self.bases = {known.name: _set(known, environ) for known in KNOWN}
        for pair in named:
            name, _, url = pair.partition("=")
            if not name.isidentifier() or not _is_base(url):
                raise SealedError("is no upstream", where=pair[:80], remedy=_REMEDY)
            self.bases[name] = url
        for name, url in self.bases.items():
            if not _is_base(url):
                raise SealedError("is no base URL", where=f"upstream {name}", remedy=_REMEDY)

    def of(self, raw_path: str) -> str | None:
        """The URL that a path with query leads to, None for one that leads nowhere."""
        name, slash, rest = raw_path.removeprefix("/").partition("/")
        base = self.bases.get(name.partition("?")[0])
        return None if base is None else f"{base.rstrip('/')}{slash}{rest}"

    def environment(self, url: str) -> dict[str, str]:
        """The variables that point clients at the proxy at `url`."""
        return {name: f"{url}/{known.name}" for known in KNOWN for name in known.variables}

    def filled(self, command: Iterable[str], url: str) -> list[str]:
        """A command whose `{anthropic}`, `{openai}`, … became the base URLs of the proxy."""
        found = []
        for word in command:
            for name in self.bases:
                word = word.replace(f"{{{name}}}", f"{url}/{name}")  # noqa: PLW2901 - built up
            found.append(word)
        return found


def _set(known: Known, environ: Mapping[str, str]) -> str:
    return next((environ[name] for name in known.variables if environ.get(name)), known.base)


def _is_base(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
