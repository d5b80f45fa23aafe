"""Who answers: vendor and platform of a call, from what the door says, the model and the host.

`vendor` is who mints the seal (Claude on Bedrock is `anthropic`), `platform` where it was minted.
Sources: providers' documentation of base URLs, docs/sdk-surface.md#other-carriers. Checked
2026-11-29.
"""

from __future__ import annotations

import re
from functools import lru_cache

# what a door may call the answering side -> (vendor, platform); None: the model decides
_PROVIDERS: dict[str, tuple[str | None, str]] = {
    "anthropic": ("anthropic", "anthropic"),
    "openai": ("openai", "openai"),
    "azure": ("openai", "azure"),
    "azure.ai.openai": ("openai", "azure"),
    "azure_openai": ("openai", "azure"),
    "google": ("google", "gemini"),
    "gemini": ("google", "gemini"),
    "gcp.gemini": ("google", "gemini"),
    "gcp.gen_ai": ("google", "gemini"),
    "vertex": (None, "vertex"),
    "gcp.vertex_ai": (None, "vertex"),
    "vertex_ai": (None, "vertex"),
    "bedrock": (None, "bedrock"),
    "aws.bedrock": (None, "bedrock"),
    "xai": ("xai", "xai"),
    "x_ai": ("xai", "xai"),
    "openrouter": (None, "openrouter"),
    "litellm": (None, "litellm"),
    "portkey": (None, "portkey"),
}

_HOSTS: tuple[tuple[str, str], ...] = (
    ("api.anthropic.com", "anthropic"),
    ("api.openai.com", "openai"),
    (".openai.azure.com", "azure"),
    (".services.ai.azure.com", "azure"),
    ("generativelanguage.googleapis.com", "google"),
    ("aiplatform.googleapis.com", "vertex"),
    (".amazonaws.com", "bedrock"),
    ("api.x.ai", "xai"),
    ("openrouter.ai", "openrouter"),
    ("open.bigmodel.cn", "zhipu"),
    ("api.z.ai", "zhipu"),
    ("api.minimax.io", "minimax"),
    ("api.moonshot.ai", "moonshot_ai"),
    ("api.deepseek.com", "deepseek"),
)

HOSTS = (
    *(end for end, name in _HOSTS if name != "bedrock"),  # all of AWS is there
    ".ai.azure.com",
    ".cognitiveservices.azure.com",
    "chatgpt.com",
    ".githubcopilot.com",
)
"""The ends of the hosts at which known APIs are; a gateway of one's own may be anywhere."""

_MODELS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(^|[./])claude"), "anthropic"),
    (re.compile(r"(^|[./])(gpt-|o[1-9](-|$)|codex|chatgpt)"), "openai"),
    (re.compile(r"(^|[./])gemini"), "google"),
    (re.compile(r"(^|[./])grok"), "xai"),
    (re.compile(r"(^|[./])glm"), "zhipu"),
    (re.compile(r"(^|[./])minimax", re.IGNORECASE), "minimax"),
    (re.compile(r"(^|[./])kimi"), "moonshot_ai"),
    (re.compile(r"(^|[./])deepseek"), "deepseek"),
)

_IN_CLOUDS = frozenset(
    {
        ("anthropic", "bedrock"),
        ("anthropic", "vertex"),
        ("openai", "azure"),
        ("openai", "bedrock"),
        *((name, "vertex") for name in ("google", "gemini", "gcp.gemini", "gcp.gen_ai")),
    }
)

KNOWN_VENDORS = frozenset({"anthropic", "openai", "google", "xai"})


@lru_cache(maxsize=1024)
def resolve(provider: str, host: str, model: str, default: str) -> tuple[str, str]:
    """(vendor, platform). `provider` wins, then the host, then the model, then the dialect's own.

    But a cloud's own host tells the platform, whatever client of the vendor is pointed at it. A
    name that no table knows stands for itself: an unknown vendor is another vendor.
    """
    by_host = next((n for end, n in _HOSTS if host.endswith(end)), "")
    name = by_host if (provider, by_host) in _IN_CLOUDS else provider or by_host
    by_model = next((v for pattern, v in _MODELS if pattern.search(model)), "")
    if not name:
        own = by_model or default
        return own, own
    vendor, platform = _PROVIDERS.get(name, (name, name))
    return vendor or by_model or default, platform
