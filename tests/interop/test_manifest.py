"""A reader of `_muster/` written from docs/formats/dataset.md alone: it must find what `muster data pack` wrote."""

import dataclasses
import struct

import pytest
from checksums import crc32c

ROWS = 250
PART = 8 << 20


@dataclasses.dataclass
class Reader:
    data: bytes
    at: int = 0

    def take(self, form: str):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values[0] if len(values) == 1 else values

    def text(self) -> str:
        size = self.take("I")
        self.at += size
        return self.data[self.at - size : self.at].decode()


def read_manifest(data: bytes) -> dict:
    reader = Reader(data)
    magic, version, count, rows, identity, part, zero, crc = reader.take("8sIIQ16sQII")
    assert (magic, version, part, zero) == (b"MUSTERMF", 1, PART, 0)
    assert crc == crc32c(data[:52], bytes(4), data[56:])
    assert reader.text() == "image.bytes"
    shards = []
    for _ in range(count):
        name = reader.text()
        size, shard_rows, digest, parts, batches = reader.take("QQ16sII")
        crcs = [reader.take("I") for _ in range(parts)]
        shards.append(
            {
                "name": name,
                "bytes": size,
                "rows": shard_rows,
                "digest": digest,
                "parts": crcs,
                "batches": [reader.take("QQQQII") for _ in range(batches)],
            }
        )
    assert reader.at == len(data)
    assert sum(shard["rows"] for shard in shards) == rows
    return {"id": identity, "shards": shards}


@pytest.fixture
def packed(muster, tmp_path):
    idx = tmp_path / "idx"
    idx.mkdir()
    pixels = bytes(7 * i % 256 for i in range(ROWS * 6 * 5))
    (idx / "train-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, ROWS, 6, 5) + pixels)
    (idx / "train-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, ROWS) + bytes(i % 10 for i in range(ROWS)))
    assert muster("data", "pack", idx, "set", "--shard-size", "30KB").code == 0
    return tmp_path / "set"


def test_the_known_answer_of_this_files_own_checksum():
    assert crc32c(b"123456789") == 0xE3069283


def test_every_recorded_checksum_and_place_is_right(packed):
    manifest = read_manifest((packed / "_muster" / "manifest").read_bytes())
    assert len(manifest["shards"]) > 1
    for shard in manifest["shards"]:
        content = (packed / shard["name"]).read_bytes()
        assert shard["bytes"] == len(content)
        assert shard["parts"] == [crc32c(content[at : at + PART]) for at in range(0, len(content), PART)]
        index = (packed / "_muster" / f"{shard['name']}.idx").read_bytes()
        assert struct.unpack_from("<8sIIQQ", index) == (b"MUSTERIX", 1, 12, shard["rows"], 0)
        assert len(index) == 32 + 12 * shard["rows"]
        at = 32
        for offset, head, body, rows, frame_crc, index_crc in shard["batches"]:
            start = offset + head
            assert start % 4096 == 0 and content[offset : offset + 4] == b"\xff\xff\xff\xff"
            entries = [struct.unpack_from("<III", index, at + 12 * row) for row in range(rows)]
            assert index_crc == crc32c(index[at : at + 12 * rows])
            for place, length, crc in entries:
                image = content[start + place : start + place + length]
                assert image.startswith(b"\x89PNG") and crc == crc32c(image)
            first, last = entries[0][0], entries[-1][0] + entries[-1][1]
            assert frame_crc == crc32c(content[offset : start + first], content[start + last : start + body])
            at += 12 * rows


def test_digests_and_the_dataset_id_are_right(muster, packed):
    xxhash = pytest.importorskip("xxhash", reason="xxhash comes with datasets: make setup")
    manifest = read_manifest((packed / "_muster" / "manifest").read_bytes())
    root = xxhash.xxh3_128(b"muster dataset 1")
    for shard in manifest["shards"]:
        assert shard["digest"] == xxhash.xxh3_128((packed / shard["name"]).read_bytes()).digest()
        root.update(struct.pack("<QQ", shard["bytes"], shard["rows"]) + shard["digest"])
    assert manifest["id"] == root.digest()
    assert muster("data", "ls", "set", "--json").json()["splits"][0]["id"] == root.hexdigest()
