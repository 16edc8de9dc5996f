"""muster import hyperpod: a manifest in, a job file out, and a word about every field."""

import json


def test_an_import_is_a_job_file_and_says_where_each_field_went(muster, root, tmp_path):
    done = muster("import", "hyperpod", root / "examples" / "hyperpod.yaml")
    assert done.code == 0, done.err
    assert "10:23  spec.runPolicy.jobMaxRetryCount: 10\n      → spec.restart.total: 10" in done.err
    assert "spec.replicaSpecs[0].template.spec.containers[0].image" in done.err
    (tmp_path / "job.yaml").write_text(done.out)
    job = muster("explain", tmp_path / "job.yaml", "--json").json()
    assert job["spec"]["command"][:2] == ["python", "examples/train_ddp.py"]
    assert job["spec"]["restart"]["total"] == 10
    assert muster("import", "hyperpod", "--quiet", root / "examples" / "hyperpod.yaml").err == ""


def test_its_json_has_the_job_and_the_fields(muster, root):
    document = muster("import", "hyperpod", root / "examples" / "hyperpod.yaml", "--json").json()
    assert document["job"]["metadata"]["name"] == "sums"
    assert document["environment"][0]["name"] == "STEPS"
    fates = {field["field"]: field["fate"] for field in document["fields"]}
    assert fates["spec.runPolicy.jobMaxRetryCount"] == "taken"
    assert fates["spec.runPolicy.cleanPodPolicy"] == "no meaning"


def test_a_manifest_that_is_wrong_leaves_stdout_alone(muster, tmp_path):
    path = tmp_path / "train.json"
    path.write_text(json.dumps({"apiVersion": "sagemaker.amazonaws.com/v1", "kind": "HyperPodPyTorchJob", "spek": {}}))
    done = muster("import", "hyperpod", path)
    assert (done.code, done.out) == (2, "")
    assert f"{path}:1:" in done.err and "did you mean 'spec'?" in done.err
    assert muster("import", "hyperpod", path, "--json").json()["error"]["code"] == "invalid"
    assert muster("import", "hyperpod", tmp_path / "absent.yaml").code == 3
