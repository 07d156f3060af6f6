"""One S3 store seen by two clients, pyarrow's for tables and s3fs's for single objects, both built from one setting.

Left to themselves they read different environment variables, wait 3 or 15 seconds for an answer and give up at different
times. Keys come from the environment or the cloud's own chain.
"""

import contextlib
import os
import posixpath
import re
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow.fs as pafs

from trust.errors import ConfigError, PreflightError
from trust.faults import explain

# Waits grow from a tenth of a second: 11 attempts outlast an outage of 25 s, 8 one of 3 s. No budget is shared: in their
# `standard` modes both libraries hold 100 retries for a whole process, and with 40 requests under way a store that
# answered 503 for ten seconds made 39 of them fail.
_ATTEMPTS = 11
_PREFLIGHT_ATTEMPTS = 8
_ANSWER_S = 30  # a busy store may take long for the first byte
_CONNECT_S = 5
_REACH_S = 10

_TRANSIENT = (429, 500, 502, 503, 504)


class S3:
    """A store and how it is asked.

    Args:
        endpoint: null reads AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, then the profile; without any it is AWS itself.
        region: null reads AWS_REGION, AWS_DEFAULT_REGION, then the profile.
        virtual_hosts: ask bucket.host instead of host/bucket, which some stores want; AWS itself is always asked so.
        attempts: how often a request is made before its failure counts.

    Raises:
        ConfigError: the endpoint holds a key, or a path.
    """

    def __init__(
        self,
        endpoint: str | None = None,
        region: str | None = None,
        virtual_hosts: bool = False,
        attempts: int = _ATTEMPTS,
    ) -> None:
        env = os.environ
        self.endpoint = endpoint or env.get("AWS_ENDPOINT_URL_S3") or env.get("AWS_ENDPOINT_URL")
        if self.endpoint:
            scheme, _, host = self.endpoint.rstrip("/").rpartition("://")
            if "@" in host:
                raise ConfigError("storage.endpoint holds a key or password: keys are set in the environment")
            if "/" in host:
                address = f"{scheme or 'https'}://{host.split('/')[0]}"
                raise ConfigError(
                    f"storage.endpoint={self.endpoint}: an endpoint has no path; give {address}, and bucket and folder in "
                    "storage.root=s3://BUCKET/FOLDER"
                )
            self.endpoint = f"{scheme or 'https'}://{host}"
        self.region = region or env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION")
        self.virtual_hosts = virtual_hosts
        self._attempts = attempts

    def __reduce__(self) -> tuple[Any, ...]:
        return S3, (self.endpoint, self.region, self.virtual_hosts, self._attempts)

    @cached_property
    def objects(self) -> Any:
        """s3fs's client."""
        import s3fs

        s3fs.core.set_custom_error_handler(_is_transient)
        client = s3fs.S3FileSystem(
            client_kwargs={"endpoint_url": self.endpoint, "region_name": self.region},
            config_kwargs={
                "retries": {"total_max_attempts": 1},  # s3fs itself tries again
                "connect_timeout": _CONNECT_S,
                "read_timeout": _ANSWER_S,
                "s3": {"addressing_style": "virtual"} if self.virtual_hosts else {},
            },
            use_listings_cache=False,
            skip_instance_cache=True,
        )
        client.retries = self._attempts
        return client

    @cached_property
    def arrow(self) -> pafs.FileSystem:
        """pyarrow's client, which is told what the other one made of environment and profile."""
        made = self.objects.s3.meta
        scheme, _, host = made.endpoint_url.partition("://")
        return pafs.S3FileSystem(
            endpoint_override=host,
            scheme=scheme,
            region=made.region_name,
            force_virtual_addressing=self.virtual_hosts
            or bool(re.fullmatch(r"s3[\w.-]*\.amazonaws\.com(\.cn)?", host)),
            retry_strategy=pafs.AwsDefaultS3RetryStrategy(max_attempts=self._attempts - 1),  # it counts retries
            request_timeout=_ANSWER_S,
            connect_timeout=_CONNECT_S,
            tls_ca_file_path=os.environ.get("AWS_CA_BUNDLE"),  # the other one reads it by itself
        )

    def preflight(self, root: str) -> None:
        """Reaches the store, then writes, lists, reads and deletes an object below `root` with each client.

        Raises:
            PreflightError: says in one line what cannot be done and why, after 15 seconds or so at most.
        """
        quick = S3(self.endpoint, self.region, self.virtual_hosts, _PREFLIGHT_ATTEMPTS)
        folder = posixpath.join(root.removeprefix("s3://"), f"trust-preflight-{uuid.uuid4().hex[:12]}")
        step, written = "reach the store", []
        try:
            _reach(quick.objects.s3.meta.endpoint_url)
            doors = _doors(quick)
            for name, door in doors.items():
                step = f"write with {name}"
                door.write(f"{folder}/{name}", name.encode())
                written.append(f"{folder}/{name}")
            for name, door in doors.items():
                step = f"list with {name}"
                if not set(doors) <= {posixpath.basename(found) for found in door.list(folder)}:
                    raise OSError("what was just written is not in the listing")
            for name, door in doors.items():
                for other in doors:
                    step = f"read with {name}"
                    if door.read(f"{folder}/{other}") != other.encode():
                        raise OSError(f"what was just written with {other} reads back differently")
            for name, door in doors.items():
                step = f"delete with {name}"
                door.delete(f"{folder}/{name}")
                written.remove(f"{folder}/{name}")
            quick.objects.rm_file(f"{folder}/")  # an empty object that pyarrow leaves in place of the folder
        except Exception as error:  # the clients raise errors of many libraries
            raise self._refused(root, step, error) from error
        finally:
            for path in written:
                with contextlib.suppress(Exception):
                    quick.objects.rm_file(path)

    def look(self, root: str) -> None:
        """Reaches the store and lists `root` with each client; writes nothing.

        Raises:
            PreflightError: as `preflight` does.
        """
        quick = S3(self.endpoint, self.region, self.virtual_hosts, _PREFLIGHT_ATTEMPTS)
        bucket, _, prefix = root.removeprefix("s3://").partition("/")
        step = "reach the store"
        try:
            _reach(quick.objects.s3.meta.endpoint_url)
            step = "list with s3fs"
            quick.objects.call_s3("list_objects_v2", Bucket=bucket, Prefix=prefix, MaxKeys=1)
            step = "list with pyarrow"
            quick.arrow.get_file_info(pafs.FileSelector(root.removeprefix("s3://"), allow_not_found=True))
        except Exception as error:  # the clients raise errors of many libraries
            raise self._refused(root, step, error) from error

    def _refused(self, root: str, step: str, error: Exception) -> PreflightError:
        where = f" at {self.endpoint}" if self.endpoint else ""
        return PreflightError(f"storage.root={root}{where}: cannot {step}: {explain(error)}")


def errors() -> tuple[type[Exception], ...]:
    """What the clients raise where a request fails for good."""
    from aiohttp import ClientError as BrokenTransfer
    from botocore.exceptions import BotoCoreError, ClientError

    return OSError, BotoCoreError, ClientError, BrokenTransfer


@dataclass(frozen=True)
class _Door:
    """How one client does what jobs do with objects."""

    write: Callable[[str, bytes], object]
    list: Callable[[str], Iterable[str]]
    read: Callable[[str], bytes]
    delete: Callable[[str], object]


def _doors(store: S3) -> dict[str, _Door]:
    objects, arrow = store.objects, store.arrow

    def write(path: str, data: bytes) -> None:
        with arrow.open_output_stream(path) as out:
            out.write(data)

    def read(path: str) -> bytes:
        with arrow.open_input_file(path) as file:
            return bytes(file.read())

    def names(folder: str) -> list[str]:
        return [info.path for info in arrow.get_file_info(pafs.FileSelector(folder))]

    return {
        "s3fs": _Door(
            objects.pipe_file, lambda folder: objects.ls(folder, refresh=True), objects.cat_file, objects.rm_file
        ),
        "pyarrow": _Door(write, names, read, arrow.delete_file),
    }


def _reach(address: str) -> None:
    """Whether anything answers at all, asked in a way that fails fast."""
    from botocore.awsrequest import AWSRequest
    from botocore.httpsession import URLLib3Session
    from botocore.utils import get_environ_proxies

    session = URLLib3Session(
        verify=os.environ.get("AWS_CA_BUNDLE") or True, proxies=get_environ_proxies(address), timeout=_REACH_S
    )
    session.send(AWSRequest("HEAD", address).prepare())


def _is_transient(error: Exception) -> bool:
    """Whether s3fs is to try again what it would give up on by itself."""
    from botocore.exceptions import ClientError, ConnectionError

    if isinstance(error, ClientError):
        return error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") in _TRANSIENT
    return isinstance(error, ConnectionError)
