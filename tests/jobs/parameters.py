#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Effects of parameters that other tests do not need: each is set, and its effect is
checked."""
import hashlib
import json
import os
import socket
import struct
import threading

from job import Job, Skip, checkpoint, main

PAIR = {"nodes": 2, "per_node": 1}
TO_JSON = {"SCR_LOG_ENABLE": 1, "SCR_LOG_SYSLOG_ENABLE": 0, "SCR_LOG_JSON_ENABLE": 1}


def test_set_size():
    """The redundancy files show how many members a set has."""
    for size in (2, 4, 8):
        with Job(8, 1, SCR_FLUSH=0, SCR_SET_SIZE=size) as job:
            job.run("init", checkpoint("a"))
            names = {path.name for node in job.nodes() for path in job.cache(node).rglob("*.xor")}
            assert len(names) == 8 and all(f"_of_{size}_in_" in name for name in names), names


# ---- limits of flushes in the background; only what is too fast can be told on a busy machine ----

def seconds_of_flush(size, **parameters):
    with Job(**PAIR, SCR_FLUSH=1, SCR_FLUSH_ASYNC=1, **TO_JSON, **parameters) as job:
        job.run("init", checkpoint("a", size), "finalize")
        events = [json.loads(line) for line in (job.prefix / ".scr/log.jsonl").open()]
        return next(event["secs"] for event in events if event["event"] == "FLUSH_COMPLETE")


def test_bandwidth():
    """A node has 300 kB, and may send 200 kB in a second."""
    took = seconds_of_flush(300_000, SCR_FLUSH_ASYNC_BW="200000")
    assert took > 1.2, took


def test_percent():
    """Twenty megabytes take some milliseconds of a processor."""
    took = min(seconds_of_flush(20_000_000), seconds_of_flush(20_000_000))
    limited = seconds_of_flush(20_000_000, SCR_FLUSH_ASYNC_PERCENT="0.5")
    assert limited > 0.5 and limited > 3 * took, (limited, took)


def test_width():
    """One rank of the node after the other gets the full bandwidth; otherwise both end
    together."""
    with Job(1, 2, SCR_FLUSH=1, SCR_FLUSH_ASYNC=1, SCR_FLUSH_ASYNC_BW="200000", SCR_FLUSH_WIDTH=1) as job:
        job.run("init", checkpoint("a", 200_000), "finalize")
        ends = sorted((job.prefix / f"a/rank_{rank}").stat().st_mtime for rank in (0, 1))
        assert ends[1] - ends[0] > 0.7, ends


def test_fetch_width():
    """One rank writes its last byte before the next one reads its first."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("a", 40_000_000), "finalize")
        for rank in (0, 1):
            path = job.prefix / f"a/rank_{rank}"
            os.utime(path, ns=(0, path.stat().st_mtime_ns))
        run = job.run("init", "have => 1 a", SCR_FETCH_WIDTH=1)
        run.says("FETCH_COMPLETE", times=1)
        reads = [(job.prefix / f"a/rank_{rank}").stat().st_atime_ns for rank in (0, 1)]
        if 0 in reads:
            raise Skip("this file system does not tell when a file was read")
        writes = [(job.cache(node) / f"scr.dataset.1/a/rank_{rank}").stat().st_mtime_ns
                  for rank, node in enumerate(job.nodes())]
        first, second = sorted(range(2), key=lambda rank: reads[rank])
        assert writes[first] <= reads[second] and reads[first] < writes[first], (reads, writes)


# ---- logs ----

def test_syslog():
    """If no syslog daemon listens, as in most containers, this is reported if syslog is
    enabled."""
    for on in (1, 0):
        with Job(**PAIR) as job:
            run = job.run("init", SCR_LOG_ENABLE=1, SCR_LOG_SYSLOG_ENABLE=on)
            run.says("LOG_TARGET_FAILED", "syslog", times=on and not os.path.exists("/dev/log"))



SCRAMBLE = b"abcdefghijklmnopqrst"


def greeting():
    """The first packet of a server (protocol version 10, mysql_native_password)."""
    flags = 0x1 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x80000
    payload = b"\x0a5.5.5-10.5.0\0" + struct.pack("<I", 1) + SCRAMBLE[:8] + b"\0"
    payload += struct.pack("<HBHHB", flags & 0xffff, 33, 2, flags >> 16, 21) + bytes(10)
    payload += SCRAMBLE[8:] + b"\0mysql_native_password\0"
    return struct.pack("<I", len(payload)) + payload


def hear(server, heard):
    """Greets, and keeps the client's answer."""
    connection, _ = server.accept()
    with connection:
        connection.settimeout(20)
        connection.sendall(greeting())
        heard.append(connection.recv(4096))


def hashed(password):
    once = hashlib.sha1(password).digest()
    mask = hashlib.sha1(SCRAMBLE + hashlib.sha1(once).digest()).digest()
    return bytes(a ^ b for a, b in zip(once, mask))


def test_database():
    """Name, user and password reach the server; the statements are shown if requested."""
    for debug in (0, 1):
        heard = []
        with Job(**PAIR, SCR_FLUSH=0, **TO_JSON) as job, socket.socket(socket.AF_UNIX) as server:
            server.bind(str(job.root / "db"))
            server.listen()
            listener = threading.Thread(target=hear, args=(server, heard), daemon=True)
            listener.start()
            run = job.run("init", checkpoint("c1"), "finalize", limit=50, SCR_LOG_DB_ENABLE=1,
                          SCR_LOG_DB_HOST=job.root / "db", SCR_LOG_DB_NAME="scr_events", SCR_LOG_DB_USER="writer",
                          SCR_LOG_DB_PASS="secret", SCR_LOG_DB_DEBUG=debug)
            listener.join(20)
        if os.environ["JOB_DATABASE"] == "0" and not heard:
            run.says("LOG_TARGET_FAILED", "the database", r"/scr_log_mariadb\.so: No such file", times=1)
            continue
        assert b"writer\0\x14" + hashed(b"secret") + b"scr_events\0" in heard[0], heard
        run.not_said("secret")
        run.says("LOG_STATEMENT", "INSERT INTO", times=None if debug else 0)


if __name__ == "__main__":
    main(globals())
