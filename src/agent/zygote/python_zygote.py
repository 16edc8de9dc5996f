"""The Python zygote: an interpreter that has imported what its workers need and is copied for each of them.

`muster run` starts it as `PYTHON FLAGS -c THIS_TEXT FD KIND INDEX MODULES WORDS…`; nothing of Muster is installed where the
user's Python is, so this text is all there is of it, and it uses the standard library only. FD is the socketpair of the
shim (src/agent/shim/protocol.h), WORDS the worker's command, whose word INDEX is a script (KIND `file`), the name of a
module (`module`) or code (`code`), MODULES what to import first, with commas.

A copy is a worker as if `python` had started it: the shim is its parent, its session, folder, environment and
descriptors are those of the request, random generators are seeded anew, and `__main__`, argv and path are the program's.
Exit code 3: this interpreter cannot serve; the last line says why, and workers are executed instead.
"""

import builtins
import contextlib
import ctypes
import errno
import fcntl
import functools
import gc
import importlib
import importlib.machinery
import mmap
import os
import signal
import socket
import struct
import sys
import types

MAGIC, VERSION = 0x4D485331, 4
FORK, FORKED, READY = 201, 202, 203
HEADER = struct.Struct("=IHH")
SPAWN = struct.Struct("=IHHQIIIIQIiII")
REPLY = struct.Struct("=IHHQii")
COMMAND = struct.Struct("=IIIIQ")
COMMAND_MAGIC = 0x31444D43
FORK_FDS, MOST_FDS, MOST_WORKERS = 6, 32, 512
CANNOT_SERVE = 3

CLONE_PIDFD, CLONE_PARENT, CLONE_CHILD_CLEARTID, CLONE_CHILD_SETTID = 0x1000, 0x8000, 0x200000, 0x1000000
CLONE_INTO_CGROUP = 0x200000000
PR_SET_PDEATHSIG, PR_SET_NAME, PR_GET_TID_ADDRESS, PR_SET_PTRACER = 1, 15, 40, 0x59616D61
SYS_CLONE3, SYS_CLOSE_RANGE = 435, 436
# clone, set_robust_list, get_robust_list; the two above have one number everywhere.
SYSCALLS = {"x86_64": (56, 273, 274), "aarch64": (220, 99, 100)}

# What a training script imports in its first steps without naming it: an optimizer alone takes 2 s for torch._dynamo.
IMPLIED = {"torch": ("torch.distributed", "torch._dynamo", "torch.nn.parallel", "torch.utils.data")}

libc = ctypes.PyDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
ctypes.pythonapi.PyThreadState_Get.restype = ctypes.c_void_p


class CannotServe(Exception):
    """Says why workers are to be executed instead."""


def call(number, *arguments):
    """A system call; OSError when it fails."""
    value = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(argument) for argument in arguments])
    if value < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return value


class Cloner:
    """Copies this process into a child of its parent. glibc's fork does not know of it: the kernel writes the thread id
    where glibc keeps it, and the list of robust mutexes is registered anew."""

    def __init__(self):
        machine = os.uname().machine
        if machine not in SYSCALLS:
            raise CannotServe(f"it cannot be copied on {machine}")
        self.clone, self.set_robust, self.get_robust = SYSCALLS[machine]
        address = ctypes.c_void_p()
        if libc.prctl(PR_GET_TID_ADDRESS, ctypes.byref(address), 0, 0, 0) != 0 or not address.value:
            raise CannotServe("the kernel does not tell where the thread id is kept")
        self.thread_id = address.value

    def copy(self, cgroup):
        """(pid, pidfd) in the zygote, (0, -1) in the copy. `cgroup`: a descriptor, or -1."""
        robust, size, pidfd = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_int(-1)
        pointers = [ctypes.addressof(value) for value in (robust, size, pidfd)]
        call(self.get_robust, 0, pointers[0], pointers[1])
        ctypes.pythonapi.PyOS_BeforeFork()
        try:
            pid = self.bare(pointers[2], cgroup)
        except OSError:
            ctypes.pythonapi.PyOS_AfterFork_Parent()
            raise
        if pid == 0:
            call(self.set_robust, robust.value or 0, size.value)
            ctypes.pythonapi.PyOS_AfterFork_Child()
            return 0, -1
        ctypes.pythonapi.PyOS_AfterFork_Parent()
        return pid, pidfd.value

    def bare(self, pidfd, cgroup):
        flags = CLONE_PARENT | CLONE_PIDFD | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID
        into = CLONE_INTO_CGROUP if cgroup >= 0 else 0
        # struct clone_args; the exit signal is 0: the shim reaps with __WALL, through the pidfd.
        words = struct.pack("=11Q", flags | into, pidfd, self.thread_id, 0, 0, 0, 0, 0, 0, 0, max(cgroup, 0))
        arguments = ctypes.create_string_buffer(words, len(words))
        try:
            return call(SYS_CLONE3, ctypes.addressof(arguments), len(words))
        except OSError as error:
            # Container engines hide clone3; the older call can do all but start in a cgroup.
            if error.errno not in (errno.ENOSYS, errno.EPERM) or into:
                raise
        return call(self.clone, flags, 0, pidfd, self.thread_id, self.thread_id)


def why_not_copied(ours):
    """A lock that another thread holds would stay locked in a copy, a GPU's context does not survive one, and where a
    module keeps a file open a copy has something else. `ours`: descriptors that may be there."""
    if len(os.listdir("/proc/self/task")) != 1:
        return "it has threads"
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue  # the folder's own descriptor
        if target.startswith("/dev/nvidia"):
            return "it holds a GPU"
        if int(name) > 2 and int(name) not in ours:
            return f"it has {target} open"
    return None


class Request:
    """One packet of the shim, with the descriptors that came with it."""

    def __init__(self, packet, ancillary):
        self.fds = []
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                self.fds += [fd for (fd,) in struct.iter_unpack("=i", data[: len(data) // 4 * 4])]
        self.is_fork = len(packet) == SPAWN.size and HEADER.unpack_from(packet) == (MAGIC, VERSION, FORK)
        if not self.is_fork:
            return
        fields = SPAWN.unpack(packet)
        self.extra, self.umask, self.number, in_cgroup, self.parent, self.slot = fields[6:12]
        self.whole = self.slot < MOST_WORKERS and len(self.fds) == FORK_FDS + self.extra
        self.cgroup = self.fds[4] if self.whole and in_cgroup else -1

    def close(self):
        for fd in self.fds:
            os.close(fd)


def serve(link, cloner):
    """Answers every request. Returns only in a copy, with its request; the zygote itself ends when the shim is gone."""
    link.send(HEADER.pack(MAGIC, VERSION, READY))
    while True:
        packet, ancillary, _, _ = link.recvmsg(512, socket.CMSG_SPACE(4 * MOST_FDS), socket.MSG_CMSG_CLOEXEC)
        if not packet:
            os._exit(0)
        request = Request(packet, ancillary)
        if request.is_fork:
            pid, pidfd, error = 0, -1, errno.EMFILE
            if request.whole:
                pid, pidfd, error = copy(link, cloner, request)
            if error == 0 and pid == 0:
                link.detach()
                return request
            answer(link, REPLY.pack(MAGIC, VERSION, FORKED, request.number, pid, error), pidfd)
        request.close()


def copy(link, cloner, request):
    reason = why_not_copied({link.fileno(), *request.fds})
    if reason:
        print(f"not copied: {reason}", file=sys.stderr, flush=True)
        return 0, -1, errno.EBUSY
    try:
        return *cloner.copy(request.cgroup), 0
    except OSError as error:
        return 0, -1, error.errno


def answer(link, reply, pidfd):
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("=i", pidfd))] if pidfd >= 0 else []
    while True:
        try:
            link.sendmsg([reply], rights)
            break
        except OSError as error:
            if error.errno != errno.ETOOMANYREFS:  # of other programs' descriptors in flight nobody tells
                raise
        signal.sigtimedwait([], 0.005)
    if pidfd >= 0:
        os.close(pidfd)


class Command:
    """What the worker is to run: the sealed memfd of src/agent/shim/command.h."""

    def __init__(self, fd):
        data = os.pread(fd, os.fstat(fd).st_size, 0)
        magic, version, arguments, variables, size = COMMAND.unpack_from(data)
        strings = data[COMMAND.size : COMMAND.size + size].split(b"\0")
        if (magic, version) != (COMMAND_MAGIC, 1) or len(strings) != 2 + arguments + variables + 1:
            raise OSError(errno.EINVAL, "not a command")
        self.folder, self.program = strings[:2]
        self.words = [os.fsdecode(word) for word in strings[2 : 2 + arguments]]
        self.environment = [line for line in strings[2 + arguments : -1] if b"=" in line]


def place(fds):
    """fds[i] becomes i and every other descriptor is closed; sources are moved out of the way of targets first."""
    moved = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, len(fds)) for fd in fds]
    for target, fd in enumerate(moved):
        os.dup2(fd, target)
    try:
        call(SYS_CLOSE_RANGE, len(fds), 0xFFFFFFFF, 0)
    except OSError:
        os.closerange(len(fds), os.sysconf("SC_OPEN_MAX"))


def become_worker(request):
    """The steps of a fresh child (src/agent/shim/child.h); OSError names the one that failed."""
    command = Command(request.fds[0])
    with contextlib.suppress(PermissionError):  # it leads a session
        os.setsid()
    libc.prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != request.parent:
        raise OSError(errno.ESRCH, "the shim is gone")
    libc.prctl(PR_SET_PTRACER, ctypes.c_ulong(request.parent), 0, 0, 0)  # see child.h
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.umask(request.umask)
    if command.folder:
        os.chdir(command.folder)
    place(request.fds[1:4] + request.fds[FORK_FDS:])
    coerced = os.environb.get(b"LC_CTYPE")  # by the interpreter, at its start (PEP 538)
    os.environ.clear()
    if coerced and not {b"LC_ALL", b"LC_CTYPE", b"LANG"} & {line.partition(b"=")[0] for line in command.environment}:
        os.environb[b"LC_CTYPE"] = coerced
    for line in command.environment:
        name, _, value = line.partition(b"=")
        os.environb[name] = value
    libc.prctl(PR_SET_NAME, ctypes.c_char_p(os.path.basename(command.program)[:15]), 0, 0, 0)
    return command


def write_title(words):
    """Puts `words` where ps looks for the command line, instead of this text."""
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    begin, end = int(fields[45]), int(fields[46])  # arg_start, arg_end
    room = end - begin
    title = " ".join(words).encode("utf-8", "surrogateescape")[: room - 2]
    # A last byte that is not NUL tells the kernel that this is one string, which ends at its first NUL.
    ctypes.memmove(begin, title.ljust(room - 1, b"\0") + b".", room)


def blas_libraries():
    """Paths of what NumPy brings along for its matrix products."""
    with open("/proc/self/maps") as maps:
        paths = {line.split(maxsplit=5)[5].rstrip() for line in maps if "openblas" in line}
    return [path for path in sorted(paths) if os.path.isfile(path)]


def give_blas_its_threads():
    """The zygote has one thread; a copy has those that it would have had, started when they are needed."""
    for name in ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"):
        if os.environ.get(name, "").isdigit():
            count = int(os.environ[name])
            break
    else:
        count = len(os.sched_getaffinity(0))
    if count < 2:
        return
    for path in blas_libraries():
        library = ctypes.CDLL(path)
        for suffix in ("", "64_"):
            for prefix in ("", "scipy_"):
                set_threads = getattr(library, f"{prefix}openblas_set_num_threads{suffix}", None)
                if set_threads is not None:
                    set_threads(ctypes.c_int(count))


def forget_the_zygote():
    """What would be the same in all copies and is not in programs that were executed."""
    give_blas_its_threads()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.seed()
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None:
        processes.current_process().authkey = os.urandom(32)


def main_module(words, kind, index):
    """A fresh `__main__`, with argv as the program finds it."""
    main = types.ModuleType("__main__")
    main.__builtins__ = builtins
    sys.modules["__main__"] = main
    sys.orig_argv = list(words)
    sys.argv = words[index:] if kind == "file" else ["-m" if kind == "module" else "-c", *words[index + 1 :]]
    if sys.version_info < (3, 14):
        main.__annotations__ = {}
    main.__loader__ = importlib.machinery.BuiltinImporter
    return main


def stack_of_main_thread():
    with open("/proc/self/maps") as maps:
        for line in maps:
            if line.rstrip().endswith("[stack]"):
                low, high = line.split()[0].split("-")
                return int(low, 16), int(high, 16)
    return 0, 0


def outermost(call_in_c, *arguments):
    """Calls it so that no frame of ours is below its own: traceback.print_stack(), faulthandler and the stacklevel of a
    warning end where they end in a program that was executed.

    CPython takes the frame below a new one from a word of the thread's state (3.13, and 3.10) or of a record on the
    stack that the state points to (3.11, 3.12). The word is found by what it holds, which is known, and is empty
    meanwhile, as it is when the interpreter begins. Where it is not found our frames are seen. `call_in_c` is a builtin:
    what calls a Python function from here looks at no word. Nothing in here may be a Python function either."""
    low, high = stack_of_main_thread()
    frame = sys._getframe()
    own = id(frame)
    if sys.hexversion >= 0x030B0000:  # behind the count, the type and f_back
        own = ctypes.c_size_t.from_address(own + 24).value
    state = ctypes.pythonapi.PyThreadState_Get()
    words = (ctypes.c_size_t * 24).from_address(state)
    place = None
    for i in range(24):
        if words[i] == own:
            place = words
            index = i
        elif low <= words[i] < high - 16 and words[i] % 8 == 0:
            record = (ctypes.c_size_t * 2).from_address(words[i])
            for j in range(2):
                if record[j] == own:
                    place = record
                    index = j
    if place is None or sys.hexversion >= 0x030F0000:
        return call_in_c(*arguments)
    place[index] = 0
    try:
        return call_in_c(*arguments)
    finally:
        place[index] = own


def try_outermost():
    """Here a crash costs no more than the zygote: workers are executed then."""
    found = {"sys": sys}
    with contextlib.suppress(ZeroDivisionError):
        outermost(exec, "below = sys._getframe().f_back\n1 / 0", found)
    if sys._getframe().f_code is not try_outermost.__code__ or "below" not in found:
        raise CannotServe("its frames are not where they were")


def execute(main, kind, word):
    if kind == "module":
        import runpy

        outermost(functools.partial(runpy._run_module_as_main, word))
        return
    if kind == "code":
        outermost(exec, compile(word, "<string>", "exec", dont_inherit=True), main.__dict__)
        return
    path = os.path.join(os.getcwd(), word)
    try:
        with open(word, "rb") as file:
            source = file.read()
    except OSError as error:
        print(f"{sys.executable}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}", file=sys.stderr)
        sys.exit(2)
    main.__file__ = path
    main.__cached__ = None
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
    outermost(exec, compile(source, path, "exec", dont_inherit=True), main.__dict__)


def run(words, kind, index):
    """The program, to its end. An exception is shown without our frames and leaves as it would have left the program's
    own `__main__`: exit codes and a death by SIGINT stay the interpreter's business."""
    error = None
    try:
        execute(main_module(words, kind, index), kind, words[index])
    except SystemExit:
        raise
    except BaseException as raised:
        error = raised
    # Outside of the handler: what a hook raises is not "during the handling" of the program's exception.
    if error is not None:
        show(without_our_frames(error))
        sys.excepthook = lambda *_: None
        raise error


def without_our_frames(error):
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals is globals():
        trace = trace.tb_next
    return error.with_traceback(trace)


def show(error):
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    sys.last_exc = error
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except BaseException as failure:
        without_our_frames(failure)
        print("Error in sys.excepthook:", file=sys.stderr)
        sys.__excepthook__(type(failure), failure, failure.__traceback__)
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(type(error), error, error.__traceback__)


def preload(modules):
    for name in modules:
        importlib.import_module(name)
        for implied in IMPLIED.get(name, ()):
            importlib.import_module(implied)
    gc.collect()
    gc.freeze()  # a collection in a copy would touch, and so copy, every page of it


def first_path(kind, word):
    """sys.path[0] of the program; where the interpreter was told to have none there is none here either."""
    if sys.flags.isolated or getattr(sys.flags, "safe_path", False):
        return
    sys.path[0] = {"file": os.path.dirname(os.path.realpath(word)), "module": os.getcwd(), "code": ""}[kind]


def main():
    fd, kind, index, modules = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
    words = sys.argv[5:]
    libc.prctl(PR_SET_NAME, ctypes.c_char_p(b"muster-zygote"), 0, 0, 0)
    link = socket.socket(fileno=fd)
    try:
        write_title(["muster-zygote:", *words])
        cloner = Cloner()
        first_path(kind, words[index])
        os.environ["OPENBLAS_NUM_THREADS"] = "1"  # it starts its threads when it is loaded
        preload([name for name in modules.split(",") if name])
        try_outermost()
        reason = why_not_copied({link.fileno()})
        if reason:
            raise CannotServe(f"{reason} after importing {modules}")
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        sys.stderr.flush()
        os._exit(CANNOT_SERVE)
    request = serve(link, cloner)
    page = mmap.mmap(request.fds[5], MOST_WORKERS * 4)
    try:
        command = become_worker(request)
    except OSError as error:
        struct.pack_into("=i", page, request.slot * 4, error.errno or errno.EINVAL)
        os._exit(127)
    page.close()
    write_title(command.words)
    forget_the_zygote()
    run(command.words, kind, index)


main()
