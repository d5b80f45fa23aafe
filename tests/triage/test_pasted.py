"""A pasted error is resolved to the right artifact, whatever its class, and is not kept."""

from __future__ import annotations

import copy
import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from otel_sealed.cli import main
from otel_sealed.contract import Exchange
from otel_sealed.model import Rejection
from otel_sealed.transcript import read
from otel_sealed.triage.meaning import meaning, whose
from otel_sealed.triage.pasted import clues
from tests.triage.replay import replayed

CASES = Path(__file__).parents[1] / "cases"
Change = Callable[[dict[str, Any]], None]


def _as_is(_body: dict[str, Any]) -> None:
    pass


def _thinking_off(body: dict[str, Any]) -> None:
    body["thinking"] = {"type": "disabled"}


def _cache_mark(body: dict[str, Any]) -> None:
    body["messages"][1]["content"][0]["cache_control"] = {"type": "ephemeral"}


def _alone(body: dict[str, Any]) -> None:
    """Reasoning without what followed it."""
    body["input"] = [*body["input"][:2], {"role": "user", "content": "Go on."}]


def _twice(body: dict[str, Any]) -> None:
    body["input"].insert(2, copy.deepcopy(body["input"][1]))


def _compaction_cut(body: dict[str, Any]) -> None:
    body["input"][0]["encrypted_content"] = body["input"][0]["encrypted_content"][:-24]


def _status(body: dict[str, Any]) -> None:
    body["input"][1]["status"] = "completed"


@dataclass(frozen=True)
class Shape:
    """A refusal as its provider words it, on a case, and what it is about."""

    rejection: Rejection
    case: str
    message: str
    artifact: str
    change: Change = _as_is
    code: str = ""
    status: int = 400
    minted: int = 1

    @property
    def body(self) -> dict[str, Any]:
        error: dict[str, Any]
        if self.case[0] == "A":
            error = {"type": "invalid_request_error", "message": self.message}
            return {"type": "error", "error": error, "request_id": "req_011CXyz"}
        if self.case[0] == "G":
            error = {"code": 400, "message": self.message, "status": "INVALID_ARGUMENT"}
            return {"error": error}
        kind = "invalid_request_error"
        return {
            "error": {"message": self.message, "type": kind, "param": "input", "code": self.code}
        }

    @property
    def pasted(self) -> dict[str, str]:
        """As people paste it: the body, the text of the SDK's exception, a line of a log."""
        lead = (
            f"{self.status} INVALID_ARGUMENT."
            if self.case[0] == "G"
            else f"Error code: {self.status} -"
        )
        return {
            "body": json.dumps(self.body),
            "exception": f"{lead} {self.body}",
            "log": f'level=error msg="call failed: {self.message}" attempt=1',
        }


R = Rejection
SEAL = "openai.reasoning.encrypted_content"
SIGNATURE = "anthropic.thinking.signature"
SHAPES = (
    Shape(
        R.PREFIX_BINDING,
        "A13",
        "messages.1.content.0: `thinking` block is bound to a different conversation",
        "request.prefix",
    ),
    Shape(
        R.COMPACTION_INVALID,
        "O14",
        "Could not decode the compaction blob. Ensure it is unmodified from the compact response",
        "openai.compaction.encrypted_content",
        _compaction_cut,
        minted=2,
    ),
    Shape(
        R.COMPACTION_UNSUPPORTED,
        "O14",
        'item type "compaction" is not supported',
        "openai.compaction.encrypted_content",
        minted=2,
    ),
    Shape(
        R.ACCOUNT_OR_MODEL_BINDING,
        "O18",
        "encrypted reasoning was created for a different account or model",
        SEAL,
    ),
    Shape(
        R.ID_BINDING,
        "O06",
        "The encrypted content for item rs_o06x could not be verified. Reason: Encrypted content "
        "item_id did not match the target item id.",
        "openai.reasoning.id",
        code="invalid_encrypted_content",
    ),
    Shape(
        R.UNDECRYPTABLE,
        "O09",
        "The encrypted content gAAA...DQ== could not be verified. Reason: Encrypted content could "
        "not be decrypted or parsed.",
        SEAL,
        code="invalid_encrypted_content",
    ),
    Shape(
        R.SIGNATURE_INVALID,
        "A06",
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        SIGNATURE,
    ),
    Shape(
        R.SIGNATURE_INVALID, "G06", "Corrupted thought signature.", "gemini.part.thought_signature"
    ),
    Shape(
        R.SIGNATURE_MISSING,
        "A05",
        "messages.1.content.0.thinking.thinking: Field required",
        "anthropic.thinking.text",
    ),
    Shape(
        R.SIGNATURE_MISSING,
        "G01",
        "Function call is missing a thought_signature in functionCall parts. This is required for "
        "tools to work correctly, and missing thought_signature may lead to degraded model "
        "performance. Additional data, function call `default_api:find` , position 2.",
        "gemini.part.thought_signature",
    ),
    Shape(
        R.SIGNATURE_MISSING,
        "G02",
        "Unable to submit request because function call `default_api:find` in the 2. content block "
        "is missing a `thought_signature`.",
        "gemini.part.thought_signature",
    ),
    Shape(
        R.THINKING_MODIFIED,
        "A01",
        "messages.1.content.1: `thinking` or `redacted_thinking` blocks in the latest assistant "
        "message cannot be modified. These blocks must remain as they were in the original "
        "response.",
        "anthropic.redacted_thinking.data",
    ),
    Shape(
        R.THINKING_MISSING,
        "A03",
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
        "`tool_use`. When `thinking` is enabled, a final `assistant` message must start with a "
        "thinking block.",
        SIGNATURE,
    ),
    Shape(
        R.THINKING_NOT_ALLOWED,
        "A04",
        "messages.1.content.0: When thinking is disabled, an `assistant` message in the final "
        "position cannot contain `thinking`.",
        SIGNATURE,
        _thinking_off,
    ),
    Shape(
        R.ORPHAN_REASONING,
        "O18",
        "Item 'rs_o18' of type 'reasoning' was provided without its required following item.",
        "openai.reasoning",
        _alone,
    ),
    Shape(
        R.ORPHAN_FOLLOWER,
        "O03",
        "Item 'fc_o03' of type 'function_call' was provided without its required 'reasoning' item: "
        "'rs_o03'.",
        SEAL,
    ),
    Shape(
        R.ITEM_NOT_PERSISTED,
        "O01",
        "Item with id 'rs_o01' not found. Items are not persisted when `store` is set to false. "
        "Try again with `store` set to true, or remove this item from your input.",
        SEAL,
        status=404,
    ),
    Shape(
        R.STATE_LOST,
        "O12",
        "Previous response with id 'resp_w1' not found.",
        SEAL,
        code="previous_response_not_found",
    ),
    Shape(
        R.PREFILL_REFUSED,
        "A04",
        "This model does not support assistant message prefill. The conversation must end with a "
        "user message.",
        "anthropic.thinking.signature",
    ),
    Shape(
        R.ITEM_NOT_PERSISTED,
        "O18",
        "Item with id 'rs_o18' not found.",
        SEAL,
    ),
    Shape(
        R.STATE_LOST,
        "O18",
        "Previous response with id 'resp_0abc' not found.",
        SEAL,
    ),
    Shape(
        R.SIGNATURE_MISSING,
        "G01",
        "400 Provider returned error: Gemini models require OpenRouter reasoning details to be "
        "preserved in each request.",
        "gemini.part.thought_signature",
    ),
    Shape(
        R.DUPLICATE_ITEM,
        "O18",
        "Duplicate item found with id rs_o18. Remove duplicate items from your input and try "
        "again.",
        SEAL,
        _twice,
    ),
    Shape(
        R.ENVELOPE_POLLUTED,
        "A04",
        "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
        "anthropic.thinking.envelope",
        _cache_mark,
    ),
    Shape(
        R.ENVELOPE_POLLUTED,
        "O18",
        "Unknown parameter: 'input[1].status'.",
        "openai.reasoning.envelope",
        _status,
        code="unknown_parameter",
    ),
    Shape(
        R.MODE_CONFLICT,
        "O18",
        "Encrypted content cannot be requested for persisted responses",
        SEAL,
    ),
    Shape(
        R.PLAINTEXT_REASONING_REQUIRED,
        "O02",
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        SEAL,
    ),
)
NAMES = [f"{shape.rejection}-{shape.case}" for shape in SHAPES]


def refused(shape: Shape) -> list[Exchange]:
    """The case, its last request changed and answered with the refusal."""
    *before, last = read(CASES / f"{shape.case}.jsonl")
    request = copy.deepcopy(last.request)
    shape.change(request)
    return [
        *before,
        replace(last, request=request, response=shape.body, events=None, status=shape.status),
    ]


def resolved(folder: Path, text: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["triage", str(folder), "--error", text, "--json"]) == 1
    told = capsys.readouterr()
    assert told.err == ""
    found: dict[str, Any] = json.loads(told.out)
    return found


def test_every_class_of_refusals_has_a_real_shape() -> None:
    assert {*Rejection} - {Rejection.OTHER} == {shape.rejection for shape in SHAPES}


@pytest.mark.parametrize("shape", SHAPES, ids=NAMES)
def test_an_error_is_resolved_to_the_artifact_it_is_about(
    shape: Shape, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other conversations were refused, and went well, before and after it."""
    decoys = [s for s in SHAPES if s.rejection is not shape.rejection and s.case != shape.case][::7]
    exchanges = [x for s in decoys[:1] for x in refused(s)]
    exchanges += [*refused(shape), *read(CASES / "A15.jsonl")]
    exchanges += [x for s in decoys[1:] for x in refused(s)]
    folder = replayed(tmp_path, exchanges)
    for text in shape.pasted.values():
        if clues(text).rejection == "":  # a code that only the body holds
            assert shape.code
            continue
        found = resolved(folder, text, capsys)
        about = found["culprit"] or found["victim"]
        assert (shape.rejection, shape.artifact) == (found["rejection"], about["artifact"])
        assert found["incidents"][0]["artifact"] == shape.artifact
        if about["minted"] is not None:
            assert shape.minted == about["minted"]["number"]
        assert len(refused(shape)) == found["refused"]["number"]


@pytest.mark.parametrize("shape", SHAPES, ids=NAMES)
def test_nothing_of_the_text_is_told_or_kept(
    shape: Shape, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = replayed(tmp_path, refused(shape))
    canary = "Kanarienvogel-7f3a"
    text = shape.pasted["exception"].replace("message", f"message {canary}")
    capsys.readouterr()
    for options in ([], ["--json"]):
        main(["triage", str(folder), "--error", text, *options])
    told = capsys.readouterr()
    kept = b"".join(path.read_bytes() for path in folder.iterdir())
    for word in (canary, "rs_o", "fc_o", "req_011", "default_api", "gAAA"):
        assert word not in told.out + told.err
        assert word.encode() not in kept


def _twin(body: Any) -> Any:
    """The same with ids, a seal and a response of its own."""
    text = json.dumps(body).replace("o03", "zzz").replace("resp_w1", "resp_w2")
    return json.loads(text.replace("3OJQbJAaCv", "Q9JQbJAaCv"))


def test_an_id_finds_its_item_among_many_refusals_of_the_same_class(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which conversation is meant, only the id says: the newest refusal is another one."""
    shapes = [s for s in SHAPES if s.case == "O03"]
    exchanges = refused(shapes[0])
    twin = [
        replace(x, request=_twin(x.request), response=_twin(x.response), conversation="another")
        for x in exchanges
    ]
    folder = replayed(tmp_path, [*exchanges, *twin])
    mine = resolved(folder, shapes[0].pasted["body"], capsys)
    others = resolved(folder, shapes[0].pasted["body"].replace("o03", "zzz"), capsys)
    assert (mine["how"], others["how"]) == ("id", "id")
    assert mine["conversation"] != others["conversation"]
    (folder / "key").unlink()
    unkeyed = resolved(folder, shapes[0].pasted["body"], capsys)
    assert (unkeyed["how"], unkeyed["conversation"]) == ("class", others["conversation"])


def test_an_error_can_be_piped_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = replayed(tmp_path, refused(SHAPES[0]))
    capsys.readouterr()
    monkeypatch.setattr(sys, "stdin", io.StringIO(SHAPES[0].pasted["log"]))
    assert main(["triage", str(folder), "--error", "-"]) == 1
    out = capsys.readouterr().out
    assert "points at messages.1.content.0" in out
    assert "request.prefix" in out


def test_an_error_of_something_else_finds_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = replayed(tmp_path, refused(SHAPES[0]))
    capsys.readouterr()
    assert main(["triage", str(folder), "--error", "overloaded_error: try again later"]) == 0
    assert "nothing on record fits it" in capsys.readouterr().out
    assert main(["triage", str(folder), "--error", " "]) == 2


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        ("messages.7.content.16: Invalid `signature` in `thinking` block", "messages.7.content.16"),
        ("Unknown parameter: 'input[3].status'.", "input.3"),
        ("missing a thought_signature ... position 5.", "contents.4"),
        ("in the 2. content block is missing a `thought_signature`", "contents.1"),
        ("in content position 2, part position 1", "contents.1.parts.0"),
        ("Item 'rs_0123abcd' of type 'reasoning' was provided without", "rs_"),
        ("Item 'fc_1' without its required 'reasoning' item: 'rs_12'", "rs_"),
        ("nothing of the sort", ""),
    ],
)
def test_pointers_of_every_spelling_are_read(text: str, pointer: str) -> None:
    assert clues(text).pointer == pointer


def test_what_an_error_says_is_not_in_the_repr_of_its_clues() -> None:
    assert "0123abcd" not in repr(clues("Item 'rs_0123abcd' of type 'reasoning'"))


# ------------------------------------------------------------------- an error without any record


@pytest.fixture(name="alone")
def _without_a_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], tuple[str, Any]]:
    """What is said of an error where nothing is on record, to people and to programs."""
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()

    def said(text: str) -> tuple[str, Any]:
        assert main(["triage", "--error", text]) == 0
        words = capsys.readouterr().out
        assert main(["triage", "--error", text, "--json"]) == 0
        return words, json.loads(capsys.readouterr().out)

    return said


@pytest.mark.parametrize("shape", SHAPES, ids=NAMES)
def test_without_a_record_a_class_says_what_it_means_whose_it_is_and_the_ways_out(
    shape: Shape, alone: Callable[[str], tuple[str, Any]]
) -> None:
    error = json.dumps(shape.body)
    words, found = alone(error)
    known = meaning(shape.rejection, whose(error))
    assert known is not None
    assert shape.rejection == found["rejection"]
    assert known.says in words
    assert known.whose in words
    assert (not known.rule) is ("docs/rules.md" not in words)
    assert [way.does for way in known.remedies] == [w["does"] for w in found["meaning"]["remedies"]]
    assert known.remedies != ()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Item with id 'msg_1f…' not found.", R.ITEM_NOT_PERSISTED),
        ("404 Item with id 'fc_0a' not found", R.ITEM_NOT_PERSISTED),
        ("Previous response with id 'resp_0abc' not found.", R.STATE_LOST),
        ("models require OpenRouter reasoning details to be preserved", R.SIGNATURE_MISSING),
        ("This model does not support assistant message prefill.", R.PREFILL_REFUSED),
        ("The final block in an assistant message cannot be `thinking`.", R.PREFILL_REFUSED),
        ("Invalid 'input[6].id': ''. Expected an ID that contains letters", R.ENVELOPE_POLLUTED),
        ("Invalid 'input[12].id': 'a b'. Expected an ID", R.ENVELOPE_POLLUTED),
        ("Missing required parameter: 'input[3].id'.", R.ENVELOPE_POLLUTED),
        ("Missing required parameter: 'input[3].call_id'.", ""),
        ("Response with id 'resp_1' not found", ""),
        ("max_tokens: Field required", ""),
    ],
)
def test_the_texts_of_public_reports_have_a_class(text: str, kind: str) -> None:
    assert kind == clues(text).rejection


@pytest.mark.parametrize(
    ("text", "routed"),
    [
        ("messages.1.content.0: Invalid `signature` in `thinking` block", True),
        ("The encrypted content gAAA could not be verified.", True),
        ("Item 'msg_1' was provided without its required 'reasoning' item: 'rs_2'.", False),
    ],
)
def test_what_may_be_due_to_the_route_has_a_way_to_look_at_it(
    text: str, *, routed: bool, alone: Callable[[str], tuple[str, Any]]
) -> None:
    """Nothing on record says whether what was sent was in order: the same is not sent again."""
    words, _ = alone(text)
    assert (routed, False) == ("look at what routes the calls" in words, "send the same" in words)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("messages.1.content.0: Invalid `signature` in `thinking` block", "A1"),
        ("Corrupted thought signature.", "G11"),
        ("Gemini models require OpenRouter reasoning details to be preserved", "R7"),
        ("Function call is missing a thought_signature in functionCall parts.", "G1"),
        ("messages.1.content.0.thinking.signature: Field required", "A3"),
        ("messages.1.content.0.thinking.cache_control: Extra inputs are not permitted", "A30"),
        ("Unknown parameter: 'input[1].status'.", "O23"),
    ],
)
def test_of_several_vendors_the_words_of_the_text_choose(
    text: str, rule: str, alone: Callable[[str], tuple[str, Any]]
) -> None:
    words, found = alone(text)
    assert f"rules.md#{rule.lower()}" in words
    others = {"G": "thinking", "R": "thinking", "O": "thinking", "A": "reasoning item"}
    ways = [way["does"] for way in found["meaning"]["remedies"]]
    assert [way for way in ways if others[rule[0]] in way] == []


def test_an_error_of_no_known_class_means_nothing_here(
    alone: Callable[[str], tuple[str, Any]],
) -> None:
    _, found = alone("max_tokens: Field required")
    assert found["meaning"] is None
