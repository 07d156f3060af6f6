"""One setting for both clients, and a preflight that names what is wrong, against a real server over HTTP."""

import contextlib
import json
import pickle
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import boto3
import pytest

from tests.faulty_s3 import FaultyS3
from trust.errors import ConfigError, PreflightError
from trust.s3 import S3

RIGHTS = {"s3:PutObject": "write", "s3:ListBucket": "list", "s3:GetObject": "read", "s3:DeleteObject": "delete"}


@pytest.fixture
def no_keys(s3: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without a key, and the folder for one's config files."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    return tmp_path


@pytest.fixture
def key_for(s3_server: str, s3: str) -> Iterator[Callable[..., dict[str, str]]]:
    """Makes users; from then on the server wants a key it knows, a right signature, and the right to do it."""
    from moto.core.authorization import enable_iam_authentication

    iam = boto3.client("iam", endpoint_url=s3_server)

    def make(*rights: str) -> dict[str, str]:
        user = uuid.uuid4().hex
        iam.create_user(UserName=user)
        policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": rights, "Resource": "*"}]}
        iam.put_user_policy(UserName=user, PolicyName="p", PolicyDocument=json.dumps(policy))
        key = iam.create_access_key(UserName=user)["AccessKey"]
        stack.enter_context(enable_iam_authentication())
        return {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}

    with contextlib.ExitStack() as stack:
        yield make


def refused(root: str, match: str, store: S3 | None = None, within_s: float = 20) -> None:
    started = time.monotonic()
    with pytest.raises(PreflightError, match=match) as error:
        (store or S3()).preflight(root)
    assert time.monotonic() - started < within_s
    assert "\n" not in str(error.value)


def test_preflight_uses_each_client_for_each_step_and_leaves_nothing(faulty_s3: FaultyS3, s3: str) -> None:
    S3().preflight(f"{s3}/runs")
    for client in ("pyarrow", "s3fs"):
        for request in (
            r"(PUT|POST) \S+",
            r"GET \S+list-type=2\S*",
            r"GET \S+/s3fs",
            r"GET \S+/pyarrow",
            r"DELETE \S+",
        ):
            assert faulty_s3.count(f"^{request} {client}$"), (client, request)
    assert S3().objects.find(s3) == []


class TestEndpoint:
    def test_nothing_listens(self, s3: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            store = S3(f"http://127.0.0.1:{free.getsockname()[1]}")
            refused(s3, rf"storage.root={s3} at {store.endpoint}: cannot reach .*nothing that speaks S3 answers", store)

    def test_no_such_host(self, s3: str) -> None:
        refused(s3, "cannot reach .*nothing that speaks S3 answers", S3("http://no-such-host.invalid:9000"))

    def test_something_listens_and_says_nothing(self, s3: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as mute:
            store = S3(f"http://127.0.0.1:{mute.getsockname()[1]}")
            refused(s3, "cannot reach .*nothing that speaks S3 answers", store)

    def test_https_where_http_is_spoken(self, s3: str, s3_server: str) -> None:
        refused(s3, "cannot reach .*begin storage.endpoint with http://", S3(s3_server.replace("http://", "https://")))
        refused(s3, "cannot reach .*begin storage.endpoint with http://", S3(s3_server.removeprefix("http://")))

    def test_a_server_that_is_no_store(self, s3: str) -> None:
        class Page(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        with HTTPServer(("127.0.0.1", 0), Page) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            refused(s3, "cannot write with s3fs: .*501", S3(f"http://127.0.0.1:{server.server_address[1]}"))
            server.shutdown()

    def test_a_store_that_is_down(self, faulty_s3: FaultyS3, s3: str) -> None:
        with faulty_s3.failing("(PUT|POST|GET|DELETE) "):
            refused(s3, "cannot write with s3fs: .*ServiceUnavailable.*down or overloaded")

    def test_a_bucket_that_is_not_there(self, s3: str) -> None:
        refused("s3://nothing-here/runs", "cannot write with s3fs: .*the bucket does not exist: create it")

    @pytest.mark.parametrize("code", ["AuthorizationHeaderMalformed", "PermanentRedirect"])
    def test_a_bucket_in_another_region(self, faulty_s3: FaultyS3, s3: str, code: str) -> None:
        status = {"AuthorizationHeaderMalformed": 400, "PermanentRedirect": 301}[code]
        for client, match in (("s3fs", "PUT .* s3fs"), ("pyarrow", "POST .* pyarrow")):
            with faulty_s3.failing(match, status=status, code=code):
                refused(s3, f"cannot write with {client}: .*another region: set storage.region")


class TestKeys:
    @pytest.mark.usefixtures("no_keys")
    def test_none(self, s3: str) -> None:
        refused(s3, "cannot write with s3fs: .*no key: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")

    def test_wrong(self, s3: str, key_for: Callable[..., dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
        key = key_for("s3:*")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIANOBODY")
        refused(s3, "cannot write with s3fs: .*does not know this key: check AWS_ACCESS_KEY_ID")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", key["AWS_ACCESS_KEY_ID"])
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush-hush")
        with pytest.raises(PreflightError, match="the secret does not fit the key") as error:
            S3().preflight(s3)
        assert "hush-hush" not in str(error.value)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key["AWS_SECRET_ACCESS_KEY"])
        S3().preflight(s3)

    def test_a_session(
        self,
        s3: str,
        s3_server: str,
        key_for: Callable[..., dict[str, str]],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        def policy(**more: str) -> str:
            return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **more}]})

        iam, name = boto3.client("iam", endpoint_url=s3_server), uuid.uuid4().hex
        trusted = policy(Principal="*", Action="sts:AssumeRole")
        role = iam.create_role(RoleName=name, AssumeRolePolicyDocument=trusted)["Role"]
        iam.put_role_policy(RoleName=name, PolicyName="p", PolicyDocument=policy(Action="s3:*", Resource="*"))
        sts = boto3.client("sts", endpoint_url=s3_server)
        session = sts.assume_role(RoleArn=role["Arn"], RoleSessionName="job")["Credentials"]
        key_for("s3:*")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", session["AccessKeyId"])
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", session["SecretAccessKey"])
        monkeypatch.setenv("AWS_SESSION_TOKEN", session["SessionToken"])
        S3().preflight(s3)
        monkeypatch.setenv("AWS_SESSION_TOKEN", "stale")
        refused(s3, "cannot write with s3fs: .*AWS_SESSION_TOKEN is wrong or has expired")

    @pytest.mark.parametrize("missing", RIGHTS)
    def test_without_a_right(
        self, s3: str, key_for: Callable[..., dict[str, str]], monkeypatch: pytest.MonkeyPatch, missing: str
    ) -> None:
        for name, value in key_for(*(right for right in RIGHTS if right != missing)).items():
            monkeypatch.setenv(name, value)
        refused(s3, f"cannot {RIGHTS[missing]} with s3fs: .*the key has no right to do this here")

    @pytest.mark.parametrize(
        ("verb", "request_line"),
        [
            ("write", r"(PUT|POST) \S+/trust"),
            ("list", "GET .*list-type"),
            ("read", r"(HEAD|GET) \S+/trust\S+/(s3fs|pyarrow)"),
            ("delete", "DELETE "),
        ],
    )
    def test_a_right_that_only_pyarrow_lacks(self, faulty_s3: FaultyS3, s3: str, verb: str, request_line: str) -> None:
        with faulty_s3.failing(f"{request_line}.* pyarrow", status=403, code="AccessDenied"):
            refused(s3, f"cannot {verb} with pyarrow: .*the key has no right to do this here")

    def test_of_a_profile(
        self,
        s3: str,
        faulty_s3: FaultyS3,
        key_for: Callable[..., dict[str, str]],
        no_keys: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        key = {name.lower(): value for name, value in key_for("s3:*").items()}
        (no_keys / "credentials").write_text("[work]\n" + "".join(f"{name} = {value}\n" for name, value in key.items()))
        (no_keys / "config").write_text(f"[profile work]\nregion = eu-west-1\nendpoint_url = {faulty_s3.url}\n")
        for name in ("AWS_ENDPOINT_URL_S3", "AWS_DEFAULT_REGION"):
            monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_PROFILE", "work")
        S3().preflight(s3)
        assert faulty_s3.count("pyarrow$")
        assert faulty_s3.count("s3fs$")
        assert S3().arrow.region == "eu-west-1"
        monkeypatch.setenv("AWS_PROFILE", "play")
        refused(s3, r"cannot reach the store: .*AWS_PROFILE names a profile that is not in the AWS config files")


class TestOneSetting:
    def test_both_clients_go_where_the_setting_says(
        self, faulty_s3: FaultyS3, s3: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
        S3(faulty_s3.url, "eu-north-1").preflight(s3)
        monkeypatch.delenv("AWS_ENDPOINT_URL_S3")
        monkeypatch.setenv("AWS_ENDPOINT_URL", faulty_s3.url + "/")
        S3().preflight(s3)
        assert faulty_s3.count(r"(PUT|POST) \S+/trust-preflight-[^/]+/s3fs s3fs$") == 2
        assert faulty_s3.count(r"(PUT|POST) \S+/trust-preflight-[^/]+/pyarrow\?uploads pyarrow$") == 2

    def test_the_bucket_is_part_of_the_host_where_that_is_wanted(
        self, faulty_s3: FaultyS3, s3: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bucket, port = s3.removeprefix("s3://"), faulty_s3.url.rsplit(":", 1)[1]
        here = socket.getaddrinfo
        monkeypatch.setattr(  # curl, in pyarrow, knows that what ends in .localhost is this machine
            socket,
            "getaddrinfo",
            lambda host, *a, **k: here("127.0.0.1" if str(host).endswith("localhost") else host, *a, **k),
        )
        S3(f"http://localhost:{port}", virtual_hosts=True).preflight(f"{s3}/runs")
        for client in ("pyarrow", "s3fs"):
            assert faulty_s3.count(rf"^P\S+ //{bucket}.localhost:{port}/runs/\S+ {client}$")
        assert not faulty_s3.count(f"/{bucket}/")

    def test_amazon_itself(self, no_keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION"):
            monkeypatch.delenv(name, raising=False)
        store = S3(region="eu-north-1")
        assert store.objects.s3.meta.endpoint_url == "https://s3.eu-north-1.amazonaws.com"
        assert store.arrow.region == "eu-north-1"

    def test_no_key_is_kept(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "who")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush-hush")
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://host:1")
        store = S3()
        assert store.arrow.region == store.objects.s3.meta.region_name, "both are built"
        again = pickle.dumps(store)
        assert b"hush" not in again
        assert pickle.loads(again).endpoint == "http://host:1"
        with pytest.raises(ConfigError, match=r"storage\.endpoint holds a key") as error:
            S3("https://me:hush-hush@host")
        assert "hush" not in str(error.value)


@pytest.mark.parametrize("endpoint", ["http://store:9000/bucket", "store:9000/bucket/folder/"])
def test_an_endpoint_with_a_path_is_told_where_that_belongs(endpoint: str) -> None:
    with pytest.raises(
        ConfigError, match=r"an endpoint has no path; give https?://store:9000, and bucket and folder in "
    ):
        S3(endpoint)
    assert S3("http://store:9000/").endpoint == "http://store:9000"
