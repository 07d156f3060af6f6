"""What both clients and the file system say, in one line with what to mend."""

import pytest
from botocore.exceptions import ClientError

from trust.faults import explain


def test_the_code_that_s3fs_leaves_in_the_cause_is_said() -> None:
    error = OSError(5, "Please reduce your request rate")
    error.__cause__ = ClientError({"Error": {"Code": "SlowDown", "Message": "x"}}, "PutObject")
    assert "SlowDown: " in explain(error)
    assert explain(error).endswith("(the store is down or overloaded)")
    error.__cause__ = ClientError({"Error": {"Code": "403", "Message": "Forbidden"}}, "HeadObject")
    assert explain(error).endswith("(the key has no right to do this here)")


@pytest.mark.parametrize(
    ("said", "meaning"),
    [
        ("AWS Error SERVICE_UNAVAILABLE during CreateMultipartUpload operation: x", "the store is down or overloaded"),
        ("AWS Error UNKNOWN (HTTP status 503) during HeadObject operation: No response body.", "the store is down"),
        ("AWS Error ACCESS_DENIED during ListObjectsV2 operation: Access Denied", "the key has no right"),
        ("AWS Error NO_SUCH_BUCKET during CreateMultipartUpload operation", "the bucket does not exist"),
        (
            "AWS Error NETWORK_CONNECTION during HeadObject operation: curlCode: 7, Could not connect",
            "nothing that speaks",
        ),
        ("AWS Error UNKNOWN (HTTP status 301) during ListObjectsV2 operation", "lies in another region"),
        ("SSL validation failed for https://x [SSL: CERTIFICATE_VERIFY_FAILED]", "set AWS_CA_BUNDLE"),
        ("[Errno 28] No space left on device", "the disk is full"),
    ],
)
def test_meanings(said: str, meaning: str) -> None:
    assert meaning in explain(OSError(said))


def test_what_is_not_known_is_said_as_it_is_and_in_one_line() -> None:
    assert explain(OSError("odd\n  thing")) == "odd thing"
    assert explain(KeyError()) == "KeyError"
