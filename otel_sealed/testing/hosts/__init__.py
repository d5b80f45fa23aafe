"""Hosts as people write them, faithful and not, on the real SDKs against the strict provider.

They are what `otel-sealed demo` runs and what the tests assert host by host. Importing this package
imports no SDK; `hosts()` imports all three.
"""

from __future__ import annotations

from otel_sealed.testing.hosts.base import Expected, Host, Scene
from otel_sealed.testing.hosts.player import Played, Row, play

__all__ = ["Expected", "Host", "Played", "Row", "Scene", "hosts", "play"]


def hosts() -> tuple[Host, ...]:
    """Every host, the faithful ones first.

    Raises:
        ModuleNotFoundError: An SDK is not installed.
    """
    from otel_sealed.testing.hosts import on_anthropic, on_both, on_gemini, on_openai

    known = (*on_anthropic.HOSTS, *on_openai.HOSTS, *on_gemini.HOSTS, *on_both.HOSTS)
    return tuple(sorted(known, key=lambda host: not host.faithful))
