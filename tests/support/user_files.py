#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A file system in a process of a user (FUSE, allow_other), in which everything belongs
to a user of that user's choice: user_files.py FOLDER USER OWNER. Root calls it in its own
mount namespace. It serves a prefix directory with a configuration file until it is
unmounted."""
import ctypes
import os
import stat
import struct
import sys

LOOKUP, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR = 1, 3, 14, 15, 17, 18, 25, 26, 27, 28, 29
FORGET, FORGET_MANY = 2, 42  # without an answer
TOP, RECORDS, CONFIG = 1, 2, 3
TEXT = b"SCR_FLUSH=1\n"
ENTRIES = {TOP: {b".scr": RECORDS, b".scrconf": CONFIG}, RECORDS: {}}
HEADER = struct.Struct("<IIQQIIII")  # fuse_in_header


def mount(folder, user):
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id={user},group_id={user},allow_other".encode()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(os.environ.get("MOUNT_SOURCE", "user-files").encode(), folder.encode(), b"fuse", 2 | 4, options) != 0:  # no set-user-id programs, no devices
        raise OSError(ctypes.get_errno(), "mount")
    return device


def attributes(node, owner):
    mode, size = (stat.S_IFDIR | 0o755, 4096) if node in ENTRIES else (stat.S_IFREG | 0o644, len(TEXT))
    return struct.pack("<6Q10I", node, size, 8, 0, 0, 0, 0, 0, 0, mode, 1, owner, owner, 0, 4096, 0)


def listing(node, offset):
    text = b""
    for k, (name, inner) in enumerate(ENTRIES[node].items()):
        if k >= offset:
            entry = struct.pack("<QQII", inner, k + 1, len(name), 0) + name
            text += entry + bytes(-len(entry) % 8)
    return text


def answer(kind, node, body, owner):
    """Returns the bytes after the header of the answer; None: there is no such file."""
    if kind == INIT:
        return struct.pack("<4I2H2I2HI", 7, 31, 0, 0, 12, 12, 1 << 16, 1, 16, 0, 0) + bytes(24)
    if kind == LOOKUP:
        inner = ENTRIES[node].get(body.rstrip(b"\0"))
        return inner and struct.pack("<4Q2I", inner, 0, 1, 1, 0, 0) + attributes(inner, owner)
    if kind == GETATTR:
        return struct.pack("<QII", 1, 0, 0) + attributes(node, owner)
    if kind in (OPEN, OPENDIR):
        return struct.pack("<QII", node, 0, 0)
    if kind in (READ, READDIR):
        _, offset, size = struct.unpack_from("<QQI", body)
        return TEXT[offset:offset + size] if kind == READ else listing(node, offset)
    if kind == STATFS:
        return struct.pack("<5Q4I24x", 1000, 1000, 1000, 100, 100, 4096, 255, 4096, 0)
    return b"" if kind in (RELEASE, RELEASEDIR, FLUSH) else None


def serve(device, owner):
    while True:
        try:
            request = os.read(device, 1 << 18)
        except OSError:  # unmounted
            return
        _, kind, number, node, *_ = HEADER.unpack_from(request)
        if kind in (FORGET, FORGET_MANY):
            continue
        found = answer(kind, node, request[HEADER.size:], owner)
        failed = 0 if found is not None else -2 if kind == LOOKUP else -38
        data = found or b""
        os.write(device, struct.pack("<IiQ", 16 + len(data), failed, number) + data)


def main():
    folder, user, owner = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    device = mount(folder, user)
    if os.fork():
        return
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    os.setsid()
    for descriptor in (0, 1, 2):
        os.dup2(os.open("/dev/null", os.O_RDWR), descriptor)
    serve(device, owner)


if __name__ == "__main__":
    main()
