"""What a page or a bug report says of an incident, in plain words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from otel_sealed.model import Fate, Locus, ProviderVerdict
from otel_sealed.providers.vendors import resolve
from otel_sealed.rulebook import link
from otel_sealed.telemetry.settings import read
from otel_sealed.triage.model import Incident, Outcome

FATES: Final[dict[str, str]] = {
    Fate.STALE: "was sent although a newer one had been issued",
    Fate.UNSEALED: "never came whole, and was sent as if it had",
    Fate.NOT_REQUESTED: "was never asked for, and is missing where the mode needs it",
    Fate.ABSENT_AT_SOURCE: "was asked for and did not come",
    Fate.FOREIGN: "was sent to another vendor than the one that issued it",
    Fate.FABRICATED: "was replaced by a made-up value",
    Fate.SUBSTITUTED: "was replaced by its readable text",
    Fate.MERGED: "was joined with a neighbour",
    Fate.SPLIT: "was split",
    Fate.RETYPED: "went back in a block of another type",
    Fate.DUPLICATED: "was sent more than once",
    Fate.MISPLACED: "went back in another place",
    Fate.REORDERED: "went back in another order",
    Fate.SDK_LOSSY: "was lost between the wire and the SDK's own object",
    Fate.MODIFIED: "went back changed",
    Fate.DROPPED: "did not go back",
    Fate.INTACT: "went back as it came",
    Fate.SERVER_HELD: "was left to the state the provider keeps",
    Fate.PREFIX_CHANGED: "changed under the values that vouch for it",
    Fate.ISSUER_CHANGED: "changed between the calls of one conversation",
    Fate.ENVELOPE_MODIFIED: "gained or changed keys around an intact seal",
    Fate.ORPHANED: "stands without the item it came with",
    Fate.UNKNOWN: "was never seen coming in",
}
OUTCOMES: Final = {
    Outcome.REFUSED: "the provider refuses the call",
    Outcome.SILENT: "the provider accepts it without a word, and the model goes on without it",
    Outcome.REMOVED: "the provider accepts the call and says that it removed something",
    Outcome.RECOVERED_BY_LOSS: "the call was refused, then accepted with fewer sealed values",
    Outcome.RECOVERED: "the call was refused, then accepted with all sealed values",
    Outcome.UNREPORTED: "no answer of the provider is on record",
}
_BILLION: Final = 1_000_000_000


def explained(rule: str) -> str:
    """Where a rule is explained: a path in the repository, or below what `OTEL_SEALED_DOCS` is."""
    return link(rule, read()[0].docs)


def what_broke(incident: Incident) -> str:
    """One sentence."""
    lead = incident.lead
    fate = FATES.get(lead.fate, lead.fate)
    refusal = f" ({incident.rejection})" if incident.rejection else ""
    return f"{lead.artifact} {fate}: {OUTCOMES[incident.outcome]}{refusal}."


def owner(incident: Incident) -> tuple[str, str]:
    """(whose it is, how that is known). A word that could be wrong says so."""
    locus, about = incident.lead.locus, incident.about
    sure = "" if incident.lead.confidence == "proven" else " This is inferred, not proven."
    match locus:
        case Locus.SDK:
            sdks = ", ".join(about.sdks) or "its version is not on record"
            return "SDK", f"The wire brought it and the SDK's own object lacks it ({sdks}).{sure}"
        case Locus.BEYOND:
            who = "Provider" if _own_host(incident.host) else "Gateway or provider"
            return who, f"It left this process as it had come, and was refused there.{sure}"
        case Locus.SOURCE if incident.lead.fate == Fate.NOT_REQUESTED:
            return "Application", f"It was never asked for, so that it never came.{sure}"
        case Locus.SOURCE:
            return "Provider or connection", f"It never came whole.{sure}"
        case Locus.PROCESS if about.framework:
            why = "It happened between the SDK's response and the next request"
            return f"Framework or application ({about.framework})", f"{why}.{sure}"
        case Locus.PROCESS:
            why = "It happened between the SDK's response and the next request"
            return "Application or framework", f"{why}; no framework is on record.{sure}"
        case _:
            return "Not known", "The record does not say where it happened."


def _own_host(host: str) -> bool:
    """Whether a host is a vendor's or a cloud's own; a gateway has any other."""
    return bool(host) and resolve("", host, "", "")[1] != ""


def answer(said: str, rejection: str) -> str:
    """What the provider said, in a word or two. A refusal of no known class is one, too."""
    return {
        ProviderVerdict.REJECTED.value: "refused",
        ProviderVerdict.ACCEPTED.value: "accepted",
        ProviderVerdict.REMOVED.value: "accepted, with something removed",
    }.get(said, "refused" if rejection else "no answer on record")


def moment(at: int) -> str:
    """A time in UTC; empty where none was told."""
    if not 0 < at < 1 << 62:
        return ""
    return datetime.fromtimestamp(at / _BILLION, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def count(number: int, what: str) -> str:
    """`1 call`, `2 calls`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
