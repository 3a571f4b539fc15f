#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A first SCR program in Python: counts to 10, and continues after an interruption."""
import scr


def read(checkpoint):
    with open(checkpoint.route(f"rank_{scr.rank()}.txt")) as file:
        return int(file.read())


with scr.session(params={"SCR_CHECKPOINT_INTERVAL": 3}):
    count = scr.restart(read, default=0)
    if scr.rank() == 0:
        print(f"counting from {count}")
    while count < 10 and not scr.should_exit():
        count += 1  # the work
        if scr.need_checkpoint():
            with scr.output(f"ckpt.{count}") as out:
                with open(out.route(f"rank_{scr.rank()}.txt"), "w") as file:
                    file.write(str(count))
