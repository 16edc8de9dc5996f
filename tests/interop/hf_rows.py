"""Run by some version of Hugging Face datasets: prints the rows of a saved dataset, or saves one to read.

hf_rows.py rows FOLDER       one JSON line a row: split, label, source, path, pixels' CRC-32, the encoded bytes' CRC-32
hf_rows.py save FOLDER       a DatasetDict of images with all kinds of other columns
hf_rows.py kinds FOLDER      sets in FOLDER as save_to_disk leaves them after all that people do before; a line for each
hf_rows.py wide FOLDER       two sets in FOLDER that have a column of every kind whose Arrow type Muster reads
hf_rows.py read FOLDER       for each set in FOLDER a line: its name, and what is read from it or why it is not
"""

import hashlib
import io
import json
import pathlib
import sys
import warnings
import zlib

warnings.simplefilter("ignore")

import datasets  # noqa: E402
from PIL import Image  # noqa: E402


def rows(folder: str) -> None:
    opened = datasets.load_from_disk(folder)
    splits = opened if isinstance(opened, dict) else {str(opened.split): opened}
    for split, data in splits.items():
        raw = data.cast_column("image", datasets.Image(decode=False))
        for number in range(len(data)):
            encoded = raw[number]["image"]
            row = {
                "split": split,
                "row": number,
                "label": data[number]["label"],
                "name": data.features["label"].int2str(data[number]["label"]),
                "source": data[number].get("source"),
                "path": encoded["path"],
                "bytes": {"bytes": len(encoded["bytes"]), "crc32": zlib.crc32(encoded["bytes"])},
                "pixels": zlib.crc32(data[number]["image"].tobytes()),
            }
            print(json.dumps(row))


def picture(number: int) -> bytes:
    image = Image.new("RGB", (8 + number % 3, 6), (number % 256, 7, 99))
    out = io.BytesIO()
    image.save(out, "JPEG" if number % 2 else "PNG")
    return out.getvalue()


def save(folder: str) -> None:
    features = datasets.Features(
        {
            "image": datasets.Image(),
            "label": datasets.ClassLabel(names=["cat", "dog"]),
            "caption": datasets.Value("string"),
            "score": datasets.Value("float32"),
            "flag": datasets.Value("bool"),
            "small": datasets.Value("uint8"),
            "words": datasets.Sequence(datasets.Value("string")),
            "boxes": datasets.Sequence(datasets.Sequence(datasets.Value("float32"), length=4)),
        }
    )

    def column(make, count):
        return [make(number) for number in range(count)]

    made = {}
    for split, count in (("train", 250), ("test", 7)):
        made[split] = datasets.Dataset.from_dict(
            {
                "image": column(lambda n: {"bytes": picture(n), "path": f"{n}.img"}, count),
                "label": column(lambda n: n % 2, count),
                "caption": column(lambda n: None if n % 5 == 0 else f"Bild {n} ü", count),
                "score": column(lambda n: n / 4, count),
                "flag": column(lambda n: n % 3 == 0, count),
                "small": column(lambda n: n % 256, count),
                "words": column(lambda n: [f"w{i}" for i in range(n % 4)], count),
                "boxes": column(lambda n: [[n, 0.5, 1, 2]] * (n % 3), count),
            },
            features=features,
            split=split,
        )
    datasets.DatasetDict(made).save_to_disk(folder, num_shards={"train": 3, "test": 1})
    for split, data in made.items():
        for number, row in enumerate(data.cast_column("image", datasets.Image(decode=False))):
            encoded = row.pop("image")
            row["image"] = {
                "bytes": {"bytes": len(encoded["bytes"]), "crc32": zlib.crc32(encoded["bytes"])},
                "path": encoded["path"],
            }
            print(json.dumps({"row": number, "split": split} | row))


def kinds(folder: str) -> None:
    root = pathlib.Path(folder)
    for number in range(12):
        path = root / "in" / ("train" if number < 8 else "test") / f"class{number % 2}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture(2 * number))
    loaded = datasets.load_dataset("imagefolder", data_dir=str(root / "in"), cache_dir=str(root / "cache"))
    train = loaded["train"]
    cut = datasets.load_dataset(
        "imagefolder", data_dir=str(root / "in"), split="train[:50%]+test", cache_dir=str(root / "cache")
    )
    plain = datasets.Dataset.from_dict(
        {"image": [{"bytes": picture(n), "path": None} for n in range(5)], "n": range(5)}
    )
    made = {
        "loaded": loaded,
        "cut": cut,
        "plain": plain,
        "cast": plain.cast_column("image", datasets.Image(decode=False)).cast_column("n", datasets.Value("float64")),
        "numpy": train.with_format("numpy", columns=["label"], output_all_columns=True),
        "arrow": train.with_format("arrow"),
        "selected": train.select([3, 1, 2]),
        "renamed": train.rename_column("label", "kind"),
        "parts": train.train_test_split(test_size=0.5, seed=1),
        "joined": datasets.concatenate_datasets([train, loaded["test"]]),
        "mapped": train.map(lambda row: {"words": ["a"], "deep": {"x": 1.5, "flag": True}, "none": None}),
        "absent": datasets.Dataset.from_dict(
            {"image": [{"bytes": picture(1), "path": None}, None]}, datasets.Features({"image": datasets.Image()})
        ),
        "torn": datasets.Dataset.from_dict(
            {"n": [1]}, info=datasets.DatasetInfo(description="half \ud83d of \\\udc00")
        ),
        "empty": datasets.DatasetDict({}),
    }
    for kind in ("Audio", "Video", "Pdf", "Nifti", "Mesh"):
        if hasattr(datasets, kind):
            files = datasets.Dataset.from_dict({"x": [{"bytes": b"none of an image", "path": "x"}]})
            made[kind] = files.cast_column("x", getattr(datasets, kind)(decode=False))
    for name, data in made.items():
        data.save_to_disk(str(root / "sets" / name))
        print(json.dumps(name))


def wide(folder: str) -> None:
    value = datasets.Value
    features = {
        "image": datasets.Image(),
        "label": datasets.ClassLabel(names=["cat", "dog"]),
        "sound": {"bytes": value("binary"), "path": value("string")},
        "small": value("uint8"),
        "half": value("float16"),
        "long": value("large_string"),
        "words": datasets.Sequence(value("string")),
        "four": datasets.Sequence(value("float32"), length=4),
        "parts": datasets.Sequence({"a": value("int32"), "b": value("string")}),
        "large": datasets.LargeList(value("int64")),
        "nested": {"x": value("float64"), "deep": {"y": value("bool"), "image": datasets.Image()}},
        "listed": [{"x": value("int16")}],
        "grid": datasets.Array2D(shape=(2, 2), dtype="int32"),
        "none": value("null"),
    }
    encoded = {"bytes": picture(1), "path": None}
    row = {
        "image": encoded,
        "label": 1,
        "sound": encoded,
        "small": 7,
        "half": 0.5,
        "long": "x",
        "words": ["a"],
        "four": [1, 2, 3, 4],
        "parts": {"a": [1], "b": ["x"]},
        "large": [5],
        "nested": {"x": 1.5, "deep": {"y": True, "image": encoded}},
        "listed": [{"x": 3}],
        "grid": [[1, 2], [3, 4]],
        "none": None,
    }
    info = {
        "version": "1.2.3",
        "supervised_keys": {"input": "image", "output": "label"},
        "splits": {name: {"name": name, "num_bytes": 1, "num_examples": 2} for name in ("train", "test")},
        "post_processed": {"features": {"x": {"dtype": "date32", "_type": "Value"}}, "resources_checksums": {}},
    }
    made = datasets.Dataset.from_list([row, row], features=datasets.Features(features), split="train")
    made = made.cast_column("sound", datasets.Audio(decode=False))
    languages = {  # which save_to_disk cannot write beside an image
        "both": datasets.Translation(languages=["de", "en"]),
        "any": datasets.TranslationVariableLanguages(languages=["de", "en"]),
    }
    said = {"both": {"de": "ja", "en": "yes"}, "any": {"de": "ja", "en": ["yes", "aye"]}}
    spoken = datasets.Dataset.from_list([said], features=datasets.Features(languages), split="train")
    for name, data in (("columns", made.with_format("numpy", columns=["label"])), ("languages", spoken)):
        path = pathlib.Path(folder) / name
        data.save_to_disk(str(path))
        path /= "dataset_info.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | info))


def what_is_read(folder: pathlib.Path) -> dict:
    opened = datasets.load_from_disk(str(folder))
    splits = opened if isinstance(opened, dict) else {"": opened}
    read = {}
    for name, data in splits.items():
        content = hashlib.sha256()
        for row in data.with_format("arrow"):
            content.update(repr(row.to_pylist()).encode())
        read[name] = {
            "features": repr(sorted(data.features.to_dict().items())),
            "rows": content.hexdigest(),
            "format": repr(data.format),
        }
    return read


def read(folder: str) -> None:
    for path in sorted(pathlib.Path(folder).iterdir()):
        try:
            line = {"read": what_is_read(path)}
        except Exception as error:
            line = {"error": repr(error)}
        print(json.dumps({"name": path.name} | line))


if __name__ == "__main__":
    datasets.disable_progress_bars()
    {"rows": rows, "save": save, "kinds": kinds, "wide": wide, "read": read}[sys.argv[1]](sys.argv[2])
