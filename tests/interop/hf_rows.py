"""Run by some version of Hugging Face datasets: prints the rows of a saved dataset, or saves one to read.

hf_rows.py rows FOLDER       one JSON line a row: split, label, source, path, pixels' CRC-32, the encoded bytes' CRC-32
hf_rows.py save FOLDER       a DatasetDict of images with all kinds of other columns
"""

import io
import json
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


if __name__ == "__main__":
    datasets.disable_progress_bars()
    {"rows": rows, "save": save}[sys.argv[1]](sys.argv[2])
