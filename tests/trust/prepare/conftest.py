from collections.abc import Iterator

import pytest


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket of a real S3 server on this machine."""
    server_module = pytest.importorskip("moto.server")
    server = server_module.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for key, value in {
        "AWS_ENDPOINT_URL_S3": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(key, value)
    try:
        import s3fs

        s3fs.S3FileSystem(endpoint_url=f"http://{host}:{port}").mkdir("sets")
        yield "s3://sets"
    finally:
        server.stop()
