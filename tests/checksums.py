"""The checksums of our formats, written from their documents: readers of the tests share nothing with the product."""


def _make_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _make_table()


def crc32c(*pieces: bytes) -> int:
    """CRC-32C (RFC 3720) of the pieces in a row."""
    crc = 0xFFFFFFFF
    for piece in pieces:
        for byte in piece:
            crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF
