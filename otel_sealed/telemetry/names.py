"""Wire names to conventional names: provider, operation, finish reason, model family.

Models on metrics are folded to a known base, so that deployments, fine-tunes, ARNs and dated
snapshots neither leak what a team calls its things nor make a series each.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from otel_sealed import vocab

if TYPE_CHECKING:
    from otel_sealed.model import Facts

PROVIDERS: Final = frozenset(
    {
        "anthropic",
        "aws.bedrock",
        "azure.ai.inference",
        "azure.ai.openai",
        "cohere",
        "deepseek",
        "gcp.gemini",
        "gcp.gen_ai",
        "gcp.vertex_ai",
        "groq",
        "ibm.watsonx.ai",
        "mistral_ai",
        "moonshot_ai",
        "openai",
        "openrouter",
        "perplexity",
        "x_ai",
    }
)
"""Well-known values of `gen_ai.provider.name`, and `openrouter`, for which there is none."""

_VENDORS: Final = {
    "xai": "x_ai",
    "x.ai": "x_ai",
    "grok": "x_ai",
    "mistral": "mistral_ai",
    "mistralai": "mistral_ai",
    "moonshot": "moonshot_ai",
    "moonshotai": "moonshot_ai",
    "kimi": "moonshot_ai",
    "bedrock": "aws.bedrock",
    "aws": "aws.bedrock",
    "vertex": "gcp.vertex_ai",
    "gemini": "gcp.gemini",
    "azure": "azure.ai.openai",
    "watsonx": "ibm.watsonx.ai",
}


@lru_cache(maxsize=1024)
def provider_name(vendor: str, *, platform: str = "", host: str = "") -> str:
    """`gen_ai.provider.name` for who answers: the platform where there is one, else the vendor.

    OpenRouter has no well-known value: the vendor behind it, and its own name where that is unknown
    (docs/opentelemetry.md#provider-names).
    """
    where = f"{platform} {host}".lower()
    if "openrouter" in where and not vendor:
        return "openrouter"
    if "bedrock" in where:
        return "aws.bedrock"
    if "vertex" in where or "aiplatform.googleapis" in where:
        return "gcp.vertex_ai"
    if "azure" in where or "foundry" in where:
        return "azure.ai.openai" if vendor in {"openai", "azure", ""} else "azure.ai.inference"
    if vendor in {"google", "gemini"}:
        known = "generativelanguage" in where or platform == "gemini" or vendor == "gemini"
        return "gcp.gemini" if known else "gcp.gen_ai"
    return _VENDORS.get(vendor, vendor if vendor in PROVIDERS else vocab.word(vendor))


def provider_of(facts: Facts) -> str:
    """The same, from the facts of a call."""
    return provider_name(facts.vendor, platform=facts.platform, host=facts.host)


def metric_provider(name: str) -> str:
    """A provider name out of a closed list, for metrics."""
    return name if name in PROVIDERS else vocab.FOLDED


def operation_name(operation: str, dialect: str) -> str:
    """`gen_ai.operation.name`: the conventional one for a plain call, else the wire's own word."""
    if operation:
        return vocab.word(operation)
    return "generate_content" if dialect == "gemini" else "chat"


_FINISH: Final = {
    "completed": "stop",
    "end_turn": "stop",
    "stop": "stop",
    "stop_sequence": "stop",
    "incomplete": "length",
    "length": "length",
    "max_output_tokens": "length",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "content_filter",
    "content_filtered": "content_filter",
    "guardrail_intervened": "content_filter",
    "prohibited_content": "content_filter",
    "refusal": "content_filter",
    "safety": "content_filter",
    "function_call": "tool_call",
    "requires_action": "tool_call",
    "tool_calls": "tool_call",
    "tool_use": "tool_call",
    "compaction": "compaction",
    "failed": "error",
}


def finish_reason(stop: str, *, complete: bool) -> str:
    """`gen_ai.response.finish_reasons` entry; `error` for a cut stream, empty if unknown."""
    if not complete:
        return "error"
    lower = stop.lower()
    return _FINISH.get(lower, vocab.word(lower)) if lower else ""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FAMILIES: Final = _words(
    """claude codestral codex command deepseek devstral gemini gemma glm gpt grok jamba kimi llama
    magistral minimax ministral mistral mixtral muse nova o phi pixtral qwen sonar"""
)
_STANDALONE: Final = _words("o1 o3 o4")
_TIERS: Final = _words(
    """opus sonnet haiku fable mythos instant pro flash lite nano mini max micro premier large
    medium small turbo codex chat reasoner luna sol terra ultra fast code reasoning thinking
    non oss spark r a plus air image audio coder scout maverick vl deep research"""
)
_VERSION: Final = re.compile(r"(?:[vkrm]?\d{1,2}(?:\.\d{1,2}){0,2}o?|\d{1,3}b)\Z")
# Dates and variants at the end of a name. It is read from the end, each part once: a pattern that
# looks for their beginning reads the rest of the name from every `-`.
_DATED: Final = re.compile(
    r"\A(?>(?:\d{2,4}-\d{2}-)?"
    r"(?:\d{8}|\d{2}-\d{2}-\d{4}|\d{2}-\d{2}|\d{3,4}|tsetal|weiverp|pxe|tluafed)[-@]"
    r"|(?:\d:)?\dv-|(?:eerf|ateb|enilno|ortin|\d):)++"
)
_OWNER: Final = re.compile(r"\A(?:(?:us|eu|apac|global|au|jp|us-gov)\.)?[a-z0-9]+\.(?=[a-z])")
_BASE_LENGTH: Final = 64


@lru_cache(maxsize=1024)
def base_model(name: str) -> str:
    """The known base of a model name, or `_OTHER`: `ft:gpt-4o-2024-08-06:acme::x` → `gpt-4o`.

    The base is the longest run of family, tier and version words from the left, so that what
    somebody added to it does not survive.
    """
    text = name.lower()[:256]
    if text.startswith("ft:"):
        text = text.split(":")[1]
    text = text.rpartition("/")[2]
    text = _OWNER.sub("", text)
    text = _DATED.sub("", text[::-1])[::-1]
    base = _known_words(text.split("-"))
    return base if base and len(base) <= _BASE_LENGTH else vocab.FOLDED


def _known_words(words: list[str]) -> str:
    if words[0].rstrip("0123456789.") not in _FAMILIES:
        return ""
    kept = words[:1]
    for word in words[1:]:
        if word not in _TIERS and not _VERSION.match(word):
            break
        kept.append(word)
    return "-".join(kept) if len(kept) > 1 or words[0] in _STANDALONE else ""
