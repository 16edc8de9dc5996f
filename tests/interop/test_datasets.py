"""Hugging Face datasets and pyarrow read what we pack, and we read what they write: equal rows, both directions."""

import gzip
import json
import pathlib
import random
import shutil
import subprocess
import sys
import zlib

import pytest

HF_ROWS = pathlib.Path(__file__).with_name("hf_rows.py")
FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")
COUNT = {"train": 250, "t10k": 30}


def python_of(name: str, root: pathlib.Path) -> str:
    """The interpreter that has this version of datasets; skips, saying why, when there is none."""
    path = pathlib.Path(sys.executable) if name == "newest" else root / ".cache" / "venvs" / name / "bin" / "python"
    if not path.exists():
        pytest.skip(f"{path} is missing: make setup")
    if subprocess.run([path, "-c", "import datasets, PIL"], capture_output=True).returncode != 0:
        pytest.skip(f"{path} has no datasets with pillow: make setup")
    return str(path)


@pytest.fixture(params=["newest", "datasets-3.6"])
def hf(request, root):
    """Runs hf_rows.py in one version of datasets; the JSON lines that it prints."""
    interpreter = python_of(request.param, root)

    def run(*words) -> list[dict]:
        done = subprocess.run([interpreter, HF_ROWS, *words], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


def cut_idx(source: pathlib.Path, out: pathlib.Path, count: int) -> None:
    """The first `count` items of an idx file, as an uncompressed idx file."""
    content = gzip.decompress(source.read_bytes())
    header, item = (16, 784) if "images" in source.name else (8, 1)
    out.write_bytes(content[:4] + count.to_bytes(4, "big") + content[8 : header + item * count])


@pytest.fixture
def idx(tmp_path) -> pathlib.Path:
    if not FASHION.exists():
        pytest.fail(f"{FASHION} is missing: make setup installs dataset-fashion-mnist")
    folder = tmp_path / "fashion-idx"
    folder.mkdir()
    for part, count in COUNT.items():
        for kind in ("images-idx3", "labels-idx1"):
            name = f"{part}-{kind}-ubyte"
            cut_idx(FASHION / f"{name}.gz", folder / name, count)
    return folder


def rows_of(muster, folder, *words) -> list[dict]:
    done = muster("data", "ls", folder, "--rows", "1000000", "--json", *words)
    assert done.code == 0, done.err
    return done.json()["rows"]


def test_hf_reads_our_rows(muster, hf, idx, tmp_path):
    assert muster("data", "pack", idx, "set", "--shard-size", "100KB").code == 0
    theirs = hf("rows", tmp_path / "set")
    ours = rows_of(muster, "set")
    assert len(theirs) == len(ours) == sum(COUNT.values())
    for mine, other in zip(ours, theirs, strict=True):
        assert (mine["split"], mine["row"]) == (other["split"], other["row"])
        assert (mine["label"], mine["source"]) == (other["label"], other["source"])
        assert mine["image"] == {"bytes": other["bytes"], "path": other["path"]}
    pixels = (idx / "train-images-idx3-ubyte").read_bytes()[16:]
    labels = (idx / "train-labels-idx1-ubyte").read_bytes()[8:]
    names = muster("data", "ls", "set", "--json").json()["splits"][0]["label_names"]
    for row in theirs[: COUNT["train"]]:
        at = row["row"]
        assert row["pixels"] == zlib.crc32(pixels[784 * at : 784 * (at + 1)])
        assert row["label"] == labels[at]
        assert row["name"] == names[labels[at]]


def test_we_read_hf_rows(muster, hf, tmp_path):
    theirs = hf("save", tmp_path / "theirs")
    assert rows_of(muster, "theirs") == theirs
    listed = muster("data", "ls", "theirs", "--json").json()["splits"]
    assert [(split["split"], split["rows"], len(split["shards"])) for split in listed] == [
        ("train", 250, 3),
        ("test", 7, 1),
    ]
    assert listed[0]["label_names"] == ["cat", "dog"]
    assert not listed[0]["checksums"]
    assert muster("data", "verify", "theirs").code == 0


def test_no_set_that_hf_saved_is_called_damaged(muster, hf, tmp_path):
    names = hf("kinds", tmp_path)
    for name in names:
        done = muster("data", "verify", tmp_path / "sets" / name)
        assert done.code == 0, (name, done.out, done.err)
    assert len(names) >= 17 and {"absent", "torn", "empty", "Audio", "Video", "Pdf"} <= set(names)


def other_value(random_numbers, value):
    """A value of another type or content."""
    return random_numbers.choice([v for v in (None, 7, True, "x", [], {}, [None], {"x": "y"}) if v != value])


def mutate(random_numbers, path: pathlib.Path) -> str:
    """One thing that a disk, an editor or a script does to a JSON file; what it was."""
    content = path.read_bytes()
    kind = random_numbers.choice(["flip", "byte", "cut", "key", "value", "name"])
    at = random_numbers.randrange(len(content))
    if kind == "flip":
        content = content[:at] + bytes([content[at] ^ 1 << random_numbers.randrange(8)]) + content[at + 1 :]
    elif kind == "byte":
        content = content[:at] + bytes([random_numbers.randrange(256)]) + content[at + 1 :]
    elif kind == "cut":
        content = content[:at]
    else:
        whole = json.loads(content)
        places = [whole]  # every object and list in it
        for place in places:
            children = place.values() if isinstance(place, dict) else place
            places.extend(child for child in children if isinstance(child, dict | list) and child)
        place = random_numbers.choice(places)
        key = random_numbers.choice(list(place) if isinstance(place, dict) else range(len(place)))
        if kind == "key":
            del place[key]
        elif kind == "value" or isinstance(place, list):
            place[key] = other_value(random_numbers, place[key])
        else:
            place[str(key) + "s"] = place.pop(key)
        content = json.dumps(whole).encode()
        at = key
    path.write_bytes(content)
    return f"{path.parent.name}/{path.name}: {kind} at {at}"


MUTATIONS = 60


@pytest.mark.parametrize("seed", [1])
def test_what_hf_does_not_read_as_it_was_packed_is_never_called_ok(muster, hf, idx, tmp_path, seed):
    assert muster("data", "pack", idx, "set").code == 0
    random_numbers = random.Random(seed)
    done = {}
    for number in range(MUTATIONS):
        copy = tmp_path / "sets" / f"{number:03}"
        shutil.copytree(tmp_path / "set", copy, copy_function=lambda a, b: pathlib.Path(b).hardlink_to(a))
        victim = copy / random_numbers.choice(
            ["dataset_dict.json"] + [f"{s}/{f}.json" for s in ("train", "test") for f in ("state", "dataset_info")] * 2
        )
        shutil.copyfile(victim, copy / "own")
        (copy / "own").replace(victim)  # no longer the file that all copies share
        done[copy.name] = mutate(random_numbers, victim)
    for name in ("whole", "edited"):
        shutil.copytree(tmp_path / "set", tmp_path / "sets" / name)
    edited = tmp_path / "sets/edited/train/dataset_info.json"
    edited.write_text(json.dumps(json.loads(edited.read_text()) | {"description": "By hand: ä", "license": "mine"}))
    seen = {line.pop("name"): line for line in hf("read", tmp_path / "sets")}
    assert "read" in seen["whole"], seen["whole"]
    codes = {name: muster("data", "verify", tmp_path / "sets" / name).code for name in seen}
    assert codes["whole"] == codes["edited"] == 0 and seen["edited"] == seen["whole"]
    missed = [(done[name], seen[name]) for name in done if codes[name] == 0 and seen[name] != seen["whole"]]
    assert not missed
    assert sum(seen[name] != seen["whole"] for name in done) > MUTATIONS / 3


OTHER_VALUES = [
    *(
        None,
        7,
        -3,
        2.0,
        True,
        "",
        "zz",
        [],
        {},
        [None],
        [1, 2, 3],
        {"x": "y"},
        "1.0",
        "1.2.3",
        "int64",
        "double",
        "date32",
    ),
    *("timestamp[us]", "json", "bool", "List", "Sequence", "Array2D", "Image", "Json", "NewKind", ["a", "a"], "torch"),
    *({"input": "x"}, [{"name": "a"}, {"name": "a"}], [{"name": 1}, {"name": True}], [{}], [7], {"version_str": "1.0"}),
    {"features": {"x": {"_type": "Value", "dtype": "zz"}}},
    *("bogus", ["label"], ["nolabel"], "label", "\ud800"),
]


def change(random_numbers, whole: dict, features: list):
    """Another value, feature or name somewhere in a JSON document; what it was."""
    places = [whole]
    for place in places:
        children = place.values() if isinstance(place, dict) else place
        places.extend(child for child in children if isinstance(child, dict | list) and child)
    place = random_numbers.choice(places)
    key = random_numbers.choice(list(place) if isinstance(place, dict) else range(len(place)))
    kind = random_numbers.choice(["value", "value", "key", "name", "feature", "wrapped", "info"])
    if kind == "key":
        del place[key]
    elif kind == "name" and isinstance(place, dict):
        place[str(key) + "s"] = place.pop(key)
    elif kind == "feature":
        place[key] = random_numbers.choice(features)
    elif kind == "wrapped":
        list_kind = random_numbers.choice(["List", "Sequence", "LargeList"])
        value = place[key]
        place[key] = random_numbers.choice([[value], {"a": value}, {"feature": value, "_type": list_kind}])
    elif kind == "info":
        key = random_numbers.choice(["version", "supervised_keys", "splits", "post_processed"])
        whole[key] = random_numbers.choice(OTHER_VALUES)
    else:
        place[key] = random_numbers.choice(OTHER_VALUES)
    return kind, key


# What HF opens and never writes: the shards' own schema says otherwise, or the type is another one.
STRICTER = ("names other columns", "_output_all_columns", "_fingerprint", "_format_kwargs", "ExtensionType[", "_split")


@pytest.mark.parametrize("kind", ["columns", "languages"])
def test_a_set_of_hf_is_damaged_where_hf_refuses_it_and_nowhere_else(muster, hf, tmp_path, kind):
    hf("wide", tmp_path / "wide")
    whole = tmp_path / "wide" / kind
    random_numbers = random.Random(7)
    features = list(json.loads((whole / "dataset_info.json").read_text())["features"].values())
    done = {}
    for number in range(2 * MUTATIONS):
        copy = tmp_path / "sets" / f"{number:03}"
        shutil.copytree(whole, copy, copy_function=lambda a, b: pathlib.Path(b).hardlink_to(a))
        name = random_numbers.choice(["state.json"] + ["dataset_info.json"] * 4)
        document = json.loads((whole / name).read_text())
        done[copy.name] = (name, change(random_numbers, document, features))
        (copy / name).unlink()
        (copy / name).write_text(json.dumps(document))
    shutil.copytree(whole, tmp_path / "sets/whole")
    seen = {line.pop("name"): line for line in hf("read", tmp_path / "sets")}
    assert "read" in seen["whole"], seen["whole"]
    assert muster("data", "verify", tmp_path / "sets/whole").code == 0
    wrong = []
    for name, what in done.items():
        verified = muster("data", "verify", tmp_path / "sets" / name)
        refused = verified.code != 0
        if refused == ("error" in seen[name]):
            continue
        if not refused or not any(words in verified.out for words in STRICTER):
            wrong.append((what, seen[name], verified.out))
    assert not wrong
    assert sum("error" in line for line in seen.values()) > MUTATIONS / 2


def test_pyarrow_reads_our_shards(muster, idx, tmp_path):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is missing: make setup")
    assert muster("data", "pack", idx, "set", "--shard-size", "100KB").code == 0
    shards = sorted((tmp_path / "set" / "train").glob("*.arrow"))
    assert len(shards) > 1
    table = pa.concat_tables([pa.ipc.open_stream(pa.memory_map(str(shard))).read_all() for shard in shards])
    table.validate(full=True)
    theirs = table.to_pylist()
    for mine, other in zip(rows_of(muster, "set", "--split", "train"), theirs, strict=True):
        encoded = other["image"]["bytes"]
        assert mine["image"]["bytes"] == {"bytes": len(encoded), "crc32": zlib.crc32(encoded)}
        assert mine["image"]["path"] == other["image"]["path"]
        assert (mine["label"], mine["source"]) == (other["label"], other["source"])


def test_bodies_start_on_pages(muster, idx, tmp_path):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is missing: make setup")
    assert muster("data", "pack", idx, "set").code == 0
    (shard,) = (tmp_path / "set" / "train").glob("*.arrow")
    with pa.memory_map(str(shard)) as source:
        base = source.read_buffer(0).address
        reader = pa.ipc.open_stream(source)
        for batch in reader:
            offsets = batch.column("image").field("bytes").buffers()[1]
            assert (offsets.address - base) % 4096 == 0


def write_stream(pa, folder: pathlib.Path, table, **options) -> None:
    """A split as save_to_disk lays it out, written by pyarrow."""
    folder.mkdir()
    with pa.OSFile(str(folder / "data-00000-of-00001.arrow"), "wb") as sink:
        writer = pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options))
        writer.write_table(table, max_chunksize=3)
        writer.close()
    (folder / "dataset_info.json").write_text("{}")
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}))


def test_we_read_what_pyarrow_writes(muster, tmp_path):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is missing: make setup")
    columns = {
        "i8": pa.array([-1, None, 3, 4, 5], pa.int8()),
        "u64": pa.array([2**64 - 1, 0, None, 1, 2], pa.uint64()),
        "f64": pa.array([0.5, None, -1.25, 0, 2]),
        "large": pa.array(["a", None, "", "ü", "long " * 9], pa.large_string()),
        "flag": pa.array([True, None, False, True, True]),
        "none": pa.nulls(5),
        "fixed": pa.array([[1, 2], [3, 4], None, [5, None], [7, 8]], pa.list_(pa.int32(), 2)),
        "nested": pa.array([[{"a": 1, "b": ["x"]}], [], None, [{"a": None, "b": []}], [{"a": 2, "b": None}] * 2]),
        "lists": pa.array([[], [1], None, [2, 3], []], pa.large_list(pa.int16())),
    }
    table = pa.table(columns)
    write_stream(pa, tmp_path / "plain", table)
    ours = rows_of(muster, "plain")
    for row in ours:
        row.pop("row")
    assert ours == [{**row} for row in table.to_pylist()]


@pytest.mark.parametrize(
    ("options", "column", "reason"),
    [
        ({"compression": "zstd"}, "plain", "compressed"),
        ({"metadata_version": "V4"}, "plain", "metadata version V4"),
        ({"use_legacy_format": True}, "plain", "0.15"),
        ({}, "dictionary", "dictionary"),
        ({}, "time", "not supported"),
    ],
)
def test_what_we_do_not_read_is_refused_by_name(muster, tmp_path, options, column, reason):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is missing: make setup")
    values = {
        "plain": pa.array([1, 2, 3] * 50),
        "dictionary": pa.array(["a", "b", "a"]).dictionary_encode(),
        "time": pa.array([1, 2, 3], pa.timestamp("s")),
    }
    if options.get("metadata_version"):
        options = {"metadata_version": getattr(pa.ipc.MetadataVersion, options["metadata_version"])}
    write_stream(pa, tmp_path / "set", pa.table({"x": values[column]}), **options)
    done = muster("data", "ls", "set", "--rows", "5", "--json")
    assert done.code == 1
    assert reason in done.json()["error"]["message"], done.out
