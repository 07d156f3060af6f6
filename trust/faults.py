"""What an error of a file system or of one of the two S3 clients means, in one line."""

import re

_MEANINGS = {
    ("no such bucket", "bucket does not exist"): "the bucket does not exist: create it or mend the address",
    ("no credentials", "unable to locate credentials", "partial credentials"): (
        "no key: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
    ),
    ("config profile",): "AWS_PROFILE names a profile that is not in the AWS config files",
    ("invalid access key id",): "the store does not know this key: check AWS_ACCESS_KEY_ID",
    ("signature does not match",): "the secret does not fit the key: check AWS_SECRET_ACCESS_KEY",
    ("invalid token", "expired token", "token refresh required"): "AWS_SESSION_TOKEN is wrong or has expired",
    ("authorization header malformed", "permanent redirect", "http status 301", "illegal location"): (
        "the bucket lies in another region: set storage.region"
    ),
    ("access denied", "forbidden", "http status 403"): "the key has no right to do this here",
    ("certificate",): "the certificate is not trusted: set AWS_CA_BUNDLE to the file of its authority",
    ("wrong version number", "record layer failure", "ssl connect error"): (
        "no https is spoken there: begin storage.endpoint with http://"
    ),
    ("connect", "resolve", "name or service", "timed out", "timeout", "no route"): (
        "nothing that speaks S3 answers at this endpoint: check storage.endpoint and its port"
    ),
    ("http status 50", "slow down", "service unavailable", "internal error"): "the store is down or overloaded",
    ("permission error", "permission denied"): "this user may not do that there",
    ("no space left",): "the disk is full",
}


def explain(error: BaseException) -> str:
    """What the error says, in one line, and what to mend where that is known."""
    said = " ".join(str(error).split())[:300] or type(error).__name__
    code = _code(error)
    if code and code not in said:
        said = f"{code}: {said}"
    text = _squeezed(f"{type(error).__name__} {said}")
    for marks, meaning in _MEANINGS.items():
        if any(_squeezed(mark) in text for mark in marks):
            return f"{said} ({meaning})"
    return said


def _code(error: BaseException | None) -> str:
    """S3's code for the error, which s3fs leaves in the error's cause, and the HTTP status where there is no code."""
    while error is not None:
        if isinstance(response := getattr(error, "response", None), dict):
            code = str(response.get("Error", {}).get("Code", ""))
            return f"HTTP status {code}" if code.isdigit() else code
        error = error.__cause__
    return ""


def _squeezed(text: str) -> str:
    """Letters and digits only: one client writes NoSuchBucket, the other NO_SUCH_BUCKET."""
    return re.sub(r"[^a-z0-9]", "", text.lower())
