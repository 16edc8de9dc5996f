#!/usr/bin/env python3
"""Says how far a build is when nobody's terminal can: ninja's output comes in, a line a minute goes out.

    ninja … | progress.py        with NINJA_STATUS="[%f/%t] "

Ninja's own lines are swallowed, whatever compilers say goes on to stdout as it comes. The line a minute goes to stderr.
"""

import re
import signal
import sys
import threading
import time

EVERY_S = 60
STATUS = re.compile(rb"\[(\d+)/(\d+)\] ")
IDLE = b"ninja: no work to do."


class Progress:
    """The counts of ninja's newest line, told by a thread of its own: a long compilation prints nothing."""

    def __init__(self) -> None:
        self.counts: tuple[int, int] | None = None
        self.began = time.monotonic()
        self.done = threading.Event()

    def tell(self) -> None:
        while not self.done.wait(EVERY_S):
            minutes = round((time.monotonic() - self.began) / 60)
            told = "{} of {}".format(*self.counts) if self.counts else "begun"
            print(f"  build: {told}, {minutes} min", file=sys.stderr, flush=True)

    def take(self, line: bytes) -> None:
        status = STATUS.match(line)
        if status:
            self.counts = int(status[1]), int(status[2])
        elif line.strip() != IDLE:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()


def main() -> None:
    # Ctrl-C is for ninja, which then ends our input; what it says about that is passed on.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    progress = Progress()
    teller = threading.Thread(target=progress.tell)
    teller.start()
    try:
        for line in sys.stdin.buffer:
            progress.take(line)
    finally:
        progress.done.set()
        teller.join()


if __name__ == "__main__":
    main()
