"""The vocabulary as it was promised: `python tests/golden/vocabulary.py` adds what is new.

It refuses to take back what was promised; who means to do that edits `vocabulary.json` by hand.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).with_suffix(".json")


def current() -> dict[str, dict[str, Any]]:
    """Every name with what must not change about it."""
    from otel_sealed import vocab

    return {
        "attributes": {
            a.name: {"type": a.type, "members": list(a.members)} for a in vocab.ATTRIBUTES
        },
        "metrics": {
            m.name: {"instrument": m.instrument, "unit": m.unit, "attributes": list(m.attributes)}
            for m in vocab.METRICS
        },
        "events": {e.name: {"attributes": list(e.attributes)} for e in vocab.EVENTS},
        "artifacts": {
            name: {"seal": vocab.is_seal(name)}
            for name in sorted(vocab.SEALS | vocab.COMPANIONS | vocab.CIRCUMSTANCES)
        },
        "rules": {rule: {} for rule in rules()},
    }


def rules() -> list[str]:
    """Ids of the rules of every dialect and of our own."""
    from otel_sealed import rulebook

    return sorted({rule.id for _, rules in rulebook.chapters() for rule in rules})


def broken(promised: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What was promised and is gone or of another type. Lists may grow, never shrink."""
    faults = []
    for group, entries in promised.items():
        for name, entry in entries.items():
            if name not in now.get(group, {}):
                faults.append(f"{group}: {name} is gone")
                continue
            for key, value in entry.items():
                new = now[group][name].get(key)
                grown = isinstance(value, list) and set(value) <= set(new or ())
                if new != value and not grown:
                    faults.append(f"{group}: {name} changed its {key} from {value} to {new}")
    return faults


def main() -> int:
    """Add what is new to the golden file."""
    now = current()
    promised = json.loads(GOLDEN.read_text(encoding="utf-8")) if GOLDEN.exists() else {}
    faults = broken(promised, now)
    sys.stderr.writelines(f"{fault}\n" for fault in faults)
    if not faults:
        GOLDEN.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
