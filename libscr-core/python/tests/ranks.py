# SPDX-License-Identifier: BSD-3-Clause
"""The actions of each rank in jobs.py: ranks.py NAME [ARGUMENT]... calls the function NAME in a session."""
import os
import pathlib
import re
import signal
import sys
import time

if os.environ.get("TEST_MPI4PY"):
    from mpi4py import MPI
import scr


def path_of(dataset, step):
    return dataset.route(f"rank_{scr.rank()}.txt")


def write(name, step, **kind):
    with scr.output(name, **kind) as out, open(path_of(out, step), "w") as file:
        file.write(f"{step} of {scr.rank()}")


def read(checkpoint):
    with open(path_of(checkpoint, None)) as file:
        step, owner = file.read().split(" of ")
    assert int(owner) == scr.rank(), owner
    return int(step)


def is_last():
    return scr.rank() == scr.size() - 1


def failure(call, *arguments, code, kind=scr.Error, told=""):
    try:
        call(*arguments)
    except kind as error:
        assert error.code == code and told in str(error) and error.name in str(error), error
        return
    raise AssertionError(f"{call} did not fail")


def count(until, dies="0"):
    """Counts; the last rank is killed at a step."""
    step = scr.restart(read, default=0)
    if scr.rank() == 0:
        print(f"from {step}", flush=True)
    while step < int(until) and not scr.should_exit():
        step += 1
        if scr.need_checkpoint():
            write(f"ckpt.{step}", step)
        if step == int(dies) and is_last():
            os.kill(os.getpid(), signal.SIGKILL)


def two():
    """Two checkpoints and an output."""
    write("ckpt.1", 1)
    write("ckpt.2", 2)
    write("plot.2", 2, checkpoint=False, output=True)


def refuse():
    """The last rank cannot read the newer checkpoint: no rank uses it."""
    tried = []

    def careful(checkpoint):
        tried.append(checkpoint.name)
        step = read(checkpoint)
        if step == 2 and is_last():
            raise ValueError("not mine")
        return step

    assert scr.restart(careful, default=0) == 1 and tried == ["ckpt.2", "ckpt.1"], tried


def refuse_all():
    def never(checkpoint):
        raise OSError("no")
    assert scr.restart(never, default="nothing") == "nothing" and scr.have_restart() is None
    assert scr.restart(never) is None


def mistake():
    """One rank has a mistake in its program: the other ranks wait, and must be ended."""
    def wrong(checkpoint):
        return missing_name if is_last() else read(checkpoint)  # noqa: F821
    scr.restart(wrong)


def loops():
    """The loop of attempts, and a loop that opens no checkpoint."""
    seen = []
    for attempt in scr.restarts():
        seen.append(attempt.name)
        with attempt:
            if attempt.name == "ckpt.2":
                raise EOFError("short")
            read(attempt)
        assert attempt.accepted == (attempt.name == "ckpt.1"), attempt.name
        assert isinstance(attempt.error, EOFError) == (attempt.name == "ckpt.2")
    assert seen == ["ckpt.2", "ckpt.1"], seen
    failure(lambda: [None for attempt in scr.restarts()], code=scr.ERR_STATE, kind=scr.StateError, told="not opened")


def unwritten():
    """The block of the last rank raises: the dataset is complete on no rank."""
    try:
        with scr.output("ckpt.1") as out:
            with open(path_of(out, 1), "w") as file:
                file.write("x")
            if is_last():
                raise KeyError("disk")
    except KeyError:
        assert is_last()
    except scr.Error as error:
        assert not is_last() and error.code == scr.ERR_INVALID and error.call == "SCR_Complete_output", error
    else:
        raise AssertionError("the dataset is complete")
    assert scr.have_restart() is None
    write("ckpt.2", 2)
    assert scr.have_restart() == "ckpt.2"


def unflushed():
    """The directory of the checkpoint cannot be made: it is complete, but not copied, also not by finalize()."""
    failure(write, "ckpt.1", 1, code=scr.ERR_FLUSH, told="SCR_Complete_output: the files could not be copied")
    assert scr.have_restart() == "ckpt.1"
    failure(scr.finalize, code=scr.ERR_FLUSH, told="SCR_Finalize: ")


def take(checkpoint):
    """Each rank reads the files of its share of the writers."""
    mine = [(writer, name, size) for writer in range(scr.rank(), checkpoint.ranks, scr.size())
            for name, size in checkpoint.files(writer)]
    checkpoint.fetch(name for _, name, _ in mine)
    for writer, name, size in mine:
        assert name == f"{os.getcwd()}/{checkpoint.name}/rank_{writer}.txt", name
        with open(checkpoint.route(name)) as file:
            text = file.read()
        assert text.endswith(f" of {writer}") and size == len(text), (text, size)
    return checkpoint.ranks


def written_by(ranks):
    """The checkpoint has that number of writers, and all their files are read."""
    assert scr.restart(take) == int(ranks)


def one_file():
    """All ranks read the file of the last rank, from any directory, whatever fetches failed before."""
    def last(checkpoint):
        with_nul = "rank_0.txt\0" if is_last() else "rank_0.txt"
        for wrong in ("none", ["rank_0.txt", "/etc/passwd"], [with_nul]):
            failure(checkpoint.fetch, wrong, code=scr.ERR_ARGUMENT)
        os.chdir("/")
        name = f"rank_{checkpoint.ranks - 1}.txt"
        if not is_last():
            failure(checkpoint.route, name, code=scr.ERR_ARGUMENT)
        checkpoint.fetch(name)
        with open(checkpoint.route(name)) as file:
            return file.read()

    assert scr.restart(last) == f"2 of {scr.size() - 1}"


def put_part(out, name, offset, data):
    path, at = out.part(name, offset, len(data))
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o666), "wb") as file:
        file.seek(at)
        file.write(data)


def bytes_of(offset, length):
    """The bytes of a rank in the file that all ranks write."""
    return bytes((place * 7 + place // 250) % 256 for place in range(offset, offset + length))


def write_parts(name, **kind):
    """In each of two rounds, a rank has 1000 bytes plus its rank."""
    with scr.output(name, **kind) as out:
        begin = 0
        for owner in [*range(scr.size()), *range(scr.size())]:
            length = 1000 + owner
            if owner == scr.rank():
                put_part(out, "sub/all", begin, bytes_of(begin, length))
            begin += length
        assert out.part("sub/all", 5, 0)[0] == "/dev/null"
    return begin


def get_part(checkpoint, offset, length):
    path, at = checkpoint.part("sub/all", offset, length)
    with open(path, "rb") as file:
        file.seek(at)
        return file.read(length)


def parts(where="cache"):
    """A file of all ranks: in parts in the cache, or one file on the prefix directory if it bypasses the cache."""
    bypass = where == "bypass"
    write_parts("ckpt.1", bypass=bypass)
    assert os.path.exists("ckpt.1/sub/all") == bypass
    read_parts(str(scr.size()))


def read_parts(writers):
    """Reads any bytes that this number of ranks wrote, and requests that are refused."""
    total = 2 * sum(1000 + owner for owner in range(int(writers)))

    def take(checkpoint):
        unknown = [] if os.path.exists("ckpt.1/sub/all") else [("none", 0, 1)]  # there, nothing is fetched
        for wrong in (*unknown, ("sub/all", -1, 1), ("sub/all", 1 << 64, 1), ("sub/all", 0, 1 << 63), ("sub\0all", 0, 1)):
            failure(checkpoint.fetch_parts, [wrong if is_last() else ("sub/all", 0, 1)], code=scr.ERR_ARGUMENT, told="SCR_Fetch_file_parts")
        share = total // scr.size()
        mine = scr.rank() * share, share if not is_last() else total - scr.rank() * share
        checkpoint.fetch_parts([("sub/all", *mine)])
        assert get_part(checkpoint, *mine) == bytes_of(*mine)
        checkpoint.fetch_parts(("sub/all", *part) for part in [(990, 20), (0, total)] if is_last())
        if is_last():
            assert get_part(checkpoint, 990, 20) == bytes_of(990, 20) and get_part(checkpoint, 0, total) == bytes_of(0, total)
        for beyond in (total, 1), (-1, 1), (1 << 64, 1), (0, total + 1):
            failure(checkpoint.part, "sub/all", *beyond, code=scr.ERR_ARGUMENT, told="SCR_Route_file_part")
        return True

    assert scr.restart(take)


def page(path):
    """The programs of docs/python.md: a file per rank, and one of all ranks."""
    with open(path) as file:
        files, of_all = re.findall(r"^```python\n(.*?)^```$", file.read(), re.M | re.S)
    names = {"scr": scr, "load": lambda path: pathlib.Path(path).read_text()}
    write("ckpt.1", 1)
    exec(files, names)
    assert scr.restart(names["read"]) == [f"1 of {scr.rank()}"]
    names = {"scr": scr, "os": os, "step": 2, "offset": 10 * scr.rank(), "length": 10, "data": bytes([scr.rank()]) * 10}
    exec(of_all, names)
    assert scr.restart(names["read"]) == names["data"]


def no_list():
    """Lists files of a checkpoint in the cache, without SCR_RESTART_RANKS=any."""
    for attempt in scr.restarts():
        with attempt:
            assert attempt.ranks == scr.size()
            failure(attempt.files, 0, code=scr.FAILURE, told="SCR_Dataset_files: ")
            failure(attempt.files, scr.size(), code=scr.ERR_ARGUMENT)


def lost():
    """A file is removed after the restart began: all ranks get the error, which does not refuse the checkpoint."""
    def last(checkpoint):
        if is_last():
            os.remove(checkpoint.route(path_of_last))
        checkpoint.fetch([])  # afterwards the file is removed
        checkpoint.fetch(path_of_last)

    path_of_last = f"rank_{scr.size() - 1}.txt"
    scr.restart(last)


def states():
    """Calls in wrong states, and the names of SCR 3.1 with their results."""
    wrong = {"code": scr.ERR_STATE, "kind": scr.StateError}
    failure(scr.init, told="is initialized", **wrong)
    failure(scr.config, "SCR_FLUSH=3", told="is initialized", **wrong)
    failure(scr.complete_output, True, told="no output", **wrong)
    failure(scr.start_restart, **wrong)
    assert scr.route_file_part("a/b", 1 << 40, 3) == ("a/b", 1 << 40)
    for call, arguments in ((scr.fetch_files, [[]]), (scr.fetch_file_parts, [[]]), (scr.dataset_ranks, []), (scr.dataset_files, [0]), (scr.dataset_file, [0, 0])):
        failure(call, *arguments, told="no restart is open", **wrong)
    assert scr.have_restart() is None and scr.need_checkpoint() is False and scr.should_exit() is False
    assert scr.start_output("ckpt.1", scr.FLAG_CHECKPOINT | scr.FLAG_OUTPUT) is None
    failure(scr.start_output, "ckpt.2", scr.FLAG_CHECKPOINT, told="an output is open", **wrong)
    with open(scr.route_file(f"ckpt.1/rank_{scr.rank()}.txt"), "w") as file:
        file.write(f"1 of {scr.rank()}")
    assert scr.complete_output(True) is True
    assert scr.have_restart() == "ckpt.1" and scr.start_restart() == "ckpt.1"
    failure(scr.need_checkpoint, told="a restart is open", **wrong)
    assert os.path.isfile(scr.route_file(f"ckpt.1/rank_{scr.rank()}.txt"))
    assert scr.dataset_ranks() == scr.size() and scr.fetch_files("ckpt.1/rank_0.txt") is None
    assert scr.dataset_files(0) == 1 and scr.dataset_file(0, 0) == (f"{os.getcwd()}/ckpt.1/rank_0.txt", len("1 of 0"))
    assert scr.complete_restart(not is_last()) is False and scr.last_code() == scr.ERR_INVALID
    scr.start_output("ckpt.2", scr.FLAG_CHECKPOINT)
    assert scr.complete_output(not is_last()) is False and scr.last_code() == scr.ERR_INVALID
    for call in (scr.current, scr.delete, scr.drop):
        failure(call, "none", code=scr.ERR_NO_DATASET)
    scr.delete("ckpt.1")
    assert scr.have_restart() is None
    failure(scr.start_output, "a/../b", scr.FLAG_CHECKPOINT, code=scr.ERR_ARGUMENT)
    assert scr.config("SCR_COPY_TYPE") and scr.config("SCR_PREFIX") == os.getcwd() and scr.version().startswith("v")
    try:
        scr.route_file("a\0b")
    except ValueError:
        return
    raise AssertionError("a NUL in a name")


def disabled():
    """With SCR disabled, a program runs as without SCR."""
    assert not scr.need_checkpoint() and not scr.should_exit() and scr.have_restart() is None
    assert scr.restart(read, default=7) == 7
    assert scr.fetch_files(["none"]) is None and scr.fetch_file_parts([("none", 0, 1)]) is None
    assert scr.route_file_part("a/b", 1 << 40, 3) == ("a/b", 1 << 40)
    with scr.output("ckpt.0") as out:
        put_part(out, "all", 3 * scr.rank(), b"abc")
    with open("ckpt.0/all", "rb") as file:
        file.seek(3 * scr.rank())
        assert file.read(3) == b"abc"
    assert scr.dataset_ranks() == scr.dataset_files(0) == 0
    assert scr.dataset_file(0, 0) == ("", 0)
    write("ckpt.1", 1)
    with open(f"ckpt.1/rank_{scr.rank()}.txt") as file:
        assert file.read() == f"1 of {scr.rank()}"


def ends(how):
    """The last rank ends early, while the others work for ever."""
    if is_last():
        if how == "exit":
            sys.exit(3)
        raise RuntimeError("the end of one rank")
    for _ in range(600):
        time.sleep(0.1)
    raise AssertionError("nobody ended this rank")


def config():
    """Calls before init()."""
    for text in ("SCR_NO_SUCH=1", "CKPT=0 NO_SUCH=1"):
        failure(scr.config, text, code=scr.ERR_CONFIG, told=text)
    scr.configure(SCR_COPY_TYPE="SINGLE")  # overrides descriptors, which are valid
    scr.configure(["CKPT=0 TYPE=RS", "CKPT = 1  TYPE = RS INTERVAL=4", "CKPT="])
    failure(scr.config, "CKPT=1 NO_SUCH=1", code=scr.ERR_CONFIG, told="CKPT=1 NO_SUCH=1")
    failure(scr.config, "CKPT=x TYPE=RS", code=scr.ERR_CONFIG, told="CKPT=x TYPE=RS")
    scr.configure(SCR_FLUSH=5, SCR_COPY_TYPE="FILE")
    scr.configure(["CKPT=0 TYPE=SINGLE"])
    assert (scr.config("SCR_FLUSH"), scr.config("CKPT=0 TYPE")) == ("5", "SINGLE")
    scr.configure({"SCR_FLUSH": None})
    assert scr.config("SCR_FLUSH") == "10" and scr.config("SCR_NO_SUCH") is None
    failure(scr.need_checkpoint, code=scr.ERR_STATE, kind=scr.StateError, told="scr.init() is missing")
    failure(scr.init, "SCR_FLUSH=often", code=scr.ERR_CONFIG, told="configuration")
    scr.init({"SCR_FLUSH": 0})
    assert scr.config("SCR_FLUSH") == "0"
    scr.abandon()
    failure(scr.abandon, code=scr.ERR_STATE, kind=scr.StateError, told="scr.abandon() has ended the run already")
    scr.init()
    scr.finalize()
    failure(scr.finalize, code=scr.ERR_STATE, kind=scr.StateError, told="scr.finalize() has ended the run already")


def main(name, *arguments):
    comm = MPI.COMM_WORLD.Dup() if os.environ.get("TEST_MPI4PY") else None
    if name == "config":
        config()
        return
    with scr.session(comm):
        if comm:
            assert (scr.rank(), scr.size()) == (comm.rank, comm.size)
        globals()[name](*arguments)


main(*sys.argv[1:])
