import io
import json
import tracemalloc

import pytest

from trust.prepare.cursor import Cursor, ScanError

VALUES = ['{"a": [1, {"b": "]}\\"[{"}]}', '"x\\\\"', '"\\\\\\""', "[[], [[]]]", "-1.5e3", "null", '"ü日本"', '""']


@pytest.mark.parametrize("chunk", [1, 2, 5, 1 << 20])
@pytest.mark.parametrize("value", VALUES)
def test_moves_behind_exactly_one_value(value: str, chunk: int) -> None:
    data = f"\n {value} , 7".encode()
    cursor = Cursor(io.BytesIO(data), chunk=chunk)
    cursor.skip_value()
    assert json.loads(data[: cursor.offset]) == json.loads(value)
    assert cursor.peek() == b","
    assert cursor.line == 2


@pytest.mark.parametrize("chunk", [1, 3, 1 << 20])
def test_error_says_line_and_column(chunk: int) -> None:
    cursor = Cursor(io.BytesIO(b"[1,\n 2,\n  ]"), chunk=chunk)
    cursor.pos += 1
    for _ in range(2):
        cursor.skip_value()
        assert cursor.peek() == b","
        cursor.pos += 1
    with pytest.raises(ScanError, match="expected a value, found `]`") as caught:
        cursor.skip_value()
    assert (caught.value.line, caught.value.column) == (3, 3)


def test_utf16_is_named_and_a_byte_order_mark_skipped() -> None:
    with pytest.raises(ScanError, match="UTF-16"):
        Cursor(io.BytesIO("[1]".encode("utf-16")))
    assert Cursor(io.BytesIO("[1]".encode("utf-8-sig"))).peek() == b"["


def test_one_huge_string_is_skipped_in_bounded_memory() -> None:
    class Long:
        """A string of 64 MB, made as it is read."""

        left = 64

        def read(self, size: int, /) -> bytes:
            self.left -= 1
            return (
                b'"' if self.left == 63 else b'\\"x' * (1 << 18) if self.left > 0 else b'"' if self.left == 0 else b""
            )

    cursor = Cursor(Long())
    tracemalloc.start()
    cursor.skip_value()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert cursor.offset == 2 + 62 * 3 * (1 << 18)
    assert peak < 8e6
