"""What holds for every test."""

from __future__ import annotations

import signal
from typing import Any

import wrapt

# `nohup` and a shell's `&` ignore these, and all that the tests start would, too
for _number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        own = signal.default_int_handler if _number is signal.SIGINT else signal.SIG_DFL
        signal.signal(_number, own)


def _over_httpx(module: Any) -> None:
    """google-genai's async client goes over httpx unless a test says otherwise.

    It takes aiohttp where that is installed, which a test of one transport in this process cannot
    stand in for.
    """
    if hasattr(module, "has_aiohttp"):
        module.has_aiohttp = False


wrapt.register_post_import_hook(_over_httpx, "google.genai._api_client")
