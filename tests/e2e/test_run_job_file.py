"""What a job file asks for is done, refused before anything is made, or named as not done."""

import json

import pytest

JOB = """
apiVersion: muster/v1
kind: Job
metadata: {{name: small}}
spec:
  {more}
"""


@pytest.fixture
def run_job(muster, tmp_path):
    """Runs a job file that has `more` in its spec."""

    def run(more: str):
        job = tmp_path / "job.yaml"
        more = more if "command:" in more else f'command: ["true"]\n  {more}'
        job.write_text(JOB.format(more=more))
        return muster("run", job, "--run-dir", tmp_path / "run")

    return run


@pytest.mark.parametrize(
    ("more", "code", "text"),
    [
        ("nodes: 2\n  command: [muster-train, vit]", 1, "muster-train span one host"),
        ("nodes: 2\n  logRules: [{name: r, pattern: x, every: 1s}]", 1, "log rule 'r' has scope any"),
        ("resources: {gpu: 99}", 1, "99 GPUs"),
        ("data: [{uri: 's3://bucket/fashion'}]", 1, "spec.data[0] is s3://bucket/fashion"),
        ("data: [{uri: /usr}, {uri: no/such/folder}]", 3, "/no/such/folder does not exist"),
        ("data: [{uri: 's3://b/f', at: /no/such/place, stage: true}]", 3, "does not stage data yet"),
    ],
)
def test_what_it_cannot_have_is_refused_before_anything_is_made(run_job, tmp_path, more, code, text):
    done = run_job(more)
    assert done.code == code, done.err
    assert text in done.err and "nothing was started" in done.err
    assert not (tmp_path / "run").exists()


def test_workers_find_their_data_from_any_folder(run_job, tmp_path):
    (tmp_path / "images").mkdir()
    words = ["sh", "-c", "cd / && ls -d $$MUSTER_DATA_0 $0", "$MUSTER_DATA_0"]
    done = run_job(f"data: [{{uri: images}}]\n  command: {json.dumps(words)}")
    assert done.code == 0, done.err
    assert done.out.split("\n")[:2] == [f"[0 1] {tmp_path}/images"] * 2
    assert "uri: images" in (tmp_path / "run" / "job.yaml").read_text()


def test_what_is_not_acted_on_is_named(run_job):
    done = run_job("spares: {processes: 1}\n  resources: {cpu: 1, memory: 1GiB}")
    assert done.code == 0, done.err
    keys = "spec.spares, spec.resources.cpu, spec.resources.memory"
    assert f"not acted on yet: {keys}\n" in done.err


def test_a_plain_job_is_run_without_a_remark(run_job):
    done = run_job("data: [{uri: 's3://bucket/fashion', at: /usr}]")
    assert done.code == 0, done.err
    assert "not acted on" not in done.err


def test_the_job_in_the_run_folder_is_the_one_that_ran(start, muster):
    kept = ["--grace", 4, "--role", "x y", "--quiet", "--line-prefix", "${rank}:", "--redirects", "0:1"]
    flags = ["--max-restarts", 2, "--restart-all", *kept]
    run = start("/bin/true", flags=flags)
    assert run.end() == 0, run.err
    text = (run.folder / "job.yaml").read_text()
    restart = muster("explain", run.folder / "job.yaml", "--json").json()["spec"]["restart"]
    assert (restart["processRestarts"], restart["fullRestarts"], restart["inPlace"]) == (2, 0, False)
    assert text.endswith("\n# flags: --grace 4 --role 'x y' --quiet --line-prefix '${rank}:' --redirects 0:1\n")
    again = start(job=run.folder / "job.yaml", flags=kept)
    assert again.end() == 0, again.err
    assert (again.folder / "job.yaml").read_text() == text
