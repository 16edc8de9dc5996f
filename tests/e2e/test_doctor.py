"""muster doctor, and what muster run makes of the kernel's log; both read a file in the place of /dev/kmsg."""

XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=python, GPU has fallen off the bus."


def test_every_check_says_what_it_found(muster, tmp_path):
    done = muster("doctor", "--folder", tmp_path, "--json")
    document = done.json()
    names = [check["name"] for check in document["checks"]]
    assert {"clock", "nofile", "shm", "disk", "cores", "cgroup", "loopback", "gpu", "kernel-log"} <= set(names)
    assert len(names) == len(set(names))
    failed = [check for check in document["checks"] if check["verdict"] == "fail"]
    assert document["healthy"] == (not failed)
    assert done.code == (1 if failed else 0)
    for check in document["checks"]:
        assert check["measured"] or check["verdict"] == "skipped", check
        assert check["advice"] or check["verdict"] == "ok", check
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_fails(muster, tmp_path):
    done = muster("doctor", "--folder", tmp_path / "absent")
    assert done.code == 1
    assert "absent is not there" in done.out


def test_the_kernels_log_counts(muster, tmp_path):
    log = tmp_path / "kmsg"
    log.write_text(f"6,1,1,-;b2b35: port 2 entered forwarding state\n4,2,2,-;{XID}\n")
    document = muster("doctor", "--json", "--kernel-log", log).json()
    (check,) = (check for check in document["checks"] if check["name"] == "kernel-log")
    assert "xid 79 on PCI:0000:3b:00" in check["measured"]


def test_what_the_kernel_says_during_a_run_is_told(start, muster, tmp_path):
    log = tmp_path / "kmsg"
    log.write_text(f"4,1,1,-;{XID}\n")  # before the run: not of it
    script = f'echo "4,2,5000000,-;Out of memory: Killed process $$ (sh)" >> {log}; exec sleep 600'
    first = f'[ "$TORCHELASTIC_RESTART_COUNT" = 0 ] || exit 0; {script}'
    run = start("sh", "-c", first, ranks=1, flags=["--kernel-log", str(log), "--grace", "1"])
    told = run.wait_event("node_unwell")
    assert (told["kind"], told["severity"], told["rank"]) == ("oom", "note", 0)
    with log.open("a") as lines:
        lines.write(f"4,3,6000000,-;{XID}\n" * 3)
    told = run.wait_event("node_unwell", kind="xid")
    assert (told["code"], told["device"], told["severity"]) == (79, "PCI:0000:3b:00", "severe")
    assert told["score_milli"] >= 990
    run.process.terminate()
    run.end()
    assert len(run.events("node_unwell")) == 2  # the other two were repetitions
    assert "muster: the kernel says: xid 79 on PCI:0000:3b:00: the GPU has left the bus" in run.err
    assert "which is rank 0" in run.err
    shown = muster("show", run.folder).out
    assert "the kernel spoke of trouble 2 times: last of all xid 79 on PCI:0000:3b:00" in shown
    run.assert_nothing_left()
