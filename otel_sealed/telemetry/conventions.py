"""`gen_ai.*` and `server.*` of a span of our own, as the GenAI conventions define them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from otel_sealed import vocab
from otel_sealed.model import ProviderVerdict
from otel_sealed.telemetry import names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from otel_sealed.model import Report
    from otel_sealed.telemetry.attributes import Value


@lru_cache(maxsize=256)
def started(
    operation: str, provider: str, model: str, host: str, port: int | None
) -> Mapping[str, Value]:
    """What a span of our own starts with: all that a sampler should see. Not to be changed."""
    values: dict[str, Value] = {vocab.OPERATION: vocab.word(operation)}
    if provider:
        values[vocab.PROVIDER] = names.provider_name(provider, host=host)
    if model:
        values[vocab.REQUEST_MODEL] = vocab.model_name(model)
    address = vocab.host_name(host)
    if address:
        values[vocab.SERVER_ADDRESS] = address
        given = host.rpartition(":")[2]
        number = port or (int(given) if ":" in host and given.isdecimal() else None)
        if number:
            values[vocab.SERVER_PORT] = number
    return values


def conventional(report: Report, present: Mapping[str, Any]) -> dict[str, Any]:
    """`gen_ai.*` and `server.*` of a span of our own, as far as the report knows them."""
    facts, usage = report.facts, report.usage
    values: dict[str, Any] = {
        vocab.OPERATION: present.get(vocab.OPERATION)
        or names.operation_name(facts.operation, facts.dialect),
        vocab.PROVIDER: names.provider_of(facts),
        vocab.REQUEST_MODEL: vocab.model_name(facts.model),
        vocab.RESPONSE_MODEL: vocab.model_name(report.response_model),
        vocab.SERVER_ADDRESS: vocab.host_name(facts.host),
        vocab.INPUT_TOKENS: usage.input_tokens,
        vocab.OUTPUT_TOKENS: usage.output_tokens,
        vocab.REASONING_TOKENS: usage.reasoning_tokens,
        vocab.CACHE_READ_TOKENS: usage.cache_read_tokens,
        vocab.CACHE_WRITE_TOKENS: usage.cache_write_tokens,
    }
    reason = names.finish_reason(report.stop, complete=report.complete)
    if reason:
        values[vocab.FINISH_REASONS] = [reason]
    return {name: value for name, value in values.items() if value not in (None, "")}


def refusal(report: Report) -> str:
    """The class of a refusal, for `error.type`; empty if there was none."""
    if report.provider_verdict is not ProviderVerdict.REJECTED:
        return ""
    return report.rejection.value if report.rejection else vocab.FOLDED
