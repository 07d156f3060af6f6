"""One hash for everything that must be told apart by content."""

import hashlib
import json
from typing import Any


def fingerprint(identity: Any) -> str:
    """16 hex digits of a sha256 over plain JSON types."""
    text = json.dumps(identity, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
