"""What is watched and what cannot be, in one place: `doctor` prints it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Sdk:
    """An SDK: our name for it, its distribution, and the releases tried, both included."""

    provider: str
    distribution: str
    oldest: str
    newest: str

    def covers(self, version: str) -> bool:
        """Whether a release lies in what was tried: `2.14` is any 2.14, a `2.14.0rc1`, too."""
        number, newest = _numbers(version), _numbers(self.newest)
        return _numbers(self.oldest) <= number and number[: len(newest)] <= newest


TESTED: Final = (
    Sdk("anthropic", "anthropic", "0.52.1", "2.15"),
    Sdk("openai", "openai", "1.82.1", "3.57"),
    Sdk("google", "google-genai", "1.17", "3.6.1"),
)


@dataclass(frozen=True, slots=True)
class Transport:
    """A package that sends calls of models past the SDKs, and what becomes of them."""

    distribution: str
    says: str


_COUNTED: Final = (
    'observed at its HTTP client by instrument("http"), otel-sealed run and zero code; else its'
    " requests are counted as unobserved"
)
_UNSEEN: Final = "its requests are not even counted"
TRANSPORTS: Final = (
    Transport(
        "litellm",
        "goes over httpx and aiohttp by itself, but for chat completions of OpenAI, which are"
        f" observed; the rest is {_COUNTED}",
    ),
    Transport("dspy", f"goes over a transport of its own (lm15), or over litellm; {_COUNTED}"),
    Transport("lm15", f"is a transport of its own; {_COUNTED}"),
    Transport("smolagents", f"its LiteLLMModel goes over litellm; {_COUNTED}"),
    Transport(
        "boto3",
        f"calls Bedrock over botocore; Converse and Claude are {_COUNTED}",
    ),
    Transport("aiobotocore", f"the same over aiohttp; {_COUNTED}"),
    Transport("claude-agent-sdk", f"a process that is no Python makes its calls; {_UNSEEN}"),
    Transport("google-cloud-aiplatform", f"its gRPC clients have no HTTP client; {_UNSEEN} there"),
    Transport("xai-sdk", f"goes over gRPC; {_UNSEEN}"),
    Transport("openrouter", f"goes over httpx; {_COUNTED}"),
    Transport("groq", f"has a client of its own over httpx; {_COUNTED}"),
    Transport("mistralai", f"has a client of its own over httpx; {_COUNTED}"),
)
"""As installed and tried, or as their documentation says; looked at on 2026-12-01."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What goes through unobserved, and why."""

    what: str
    why: str


NOT_COVERED: Final = (
    Limit(
        "the Realtime API of OpenAI, the Live API and live interactions of Gemini",
        "sessions with wires of their own",
    ),
    Limit(
        "calls that go past the SDKs",
        'over HTTP they are observed under instrument("http"), and else counted in'
        " otel_sealed.unobserved; over http.client they are only counted, and over gRPC, WebSockets"
        " or in another process not even that",
    ),
    Limit("a WebSocket of the Responses API opened before we came", "it is shadowed when it opens"),
    Limit("batches of Gemini over files", "their lines go by a bucket or another client"),
    Limit(
        "of a batch, what is beyond 10,000 entries, or 32 MiB of a file",
        "it is read in memory; that there was more is counted",
    ),
    Limit("agents that a provider runs by itself", "their state never passes through the client"),
    Limit(
        "of chat.completions, batches, and several choices of one call (n)",
        "which choice the conversation goes on with is not told",
    ),
    Limit(
        "behind LiteLLM, Gemini's signatures on Messages and Responses; Portkey's streamed blocks",
        "they stand in fields of the gateway's own, which are read on Chat Completions alone",
    ),
)


def _numbers(version: str) -> tuple[int, ...]:
    """`2.14.0rc1` → (2, 14, 0): as far as there are numbers."""
    found = []
    for part in version.split(".")[:3]:
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        found.append(int(digits))
    return tuple(found)
