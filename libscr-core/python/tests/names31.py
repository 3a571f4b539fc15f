# SPDX-License-Identifier: BSD-3-Clause
"""A program that was written for the module of SCR 3.1, and checks what each call returns: names31.py RUN. In each run it
writes two checkpoints. In run 2 no rank uses the newest one, because one rank refuses it.
"""
import os
import sys

if os.environ.get("TEST_MPI4PY"):
    from mpi4py import MPI
import scr

run = int(sys.argv[1])
assert scr.config("SCR_CHECKPOINT_INTERVAL=7") is None and scr.config("SCR_CHECKPOINT_INTERVAL") == "7"
assert scr.config("SCR_CHECKPOINT_INTERVAL=") is None and scr.config("SCR_CHECKPOINT_INTERVAL") != "7"
every = [{"SCR_CHECKPOINT_INTERVAL": 1, "SCR_DEBUG": None}, ["SCR_CHECKPOINT_INTERVAL=1"], "SCR_CHECKPOINT_INTERVAL=1"]
assert scr.init(every[run]) is None
rank = MPI.COMM_WORLD.rank if os.environ.get("TEST_MPI4PY") else scr.rank()


def raises(call, *arguments):
    try:
        call(*arguments)
    except RuntimeError:
        return
    raise AssertionError(f"{call} did not fail")


step, offered = 0, []
while True:
    name = scr.have_restart()
    if name is None:
        break
    assert scr.start_restart() == name
    offered.append(name)
    path = scr.route_file(f"ckpt_{name[9:]}_{rank}.txt")
    raises(scr.route_file, "no_such_file.txt")
    with open(path) as file:
        valid = file.read() == f"{name} of {rank}\n" and (rank, name) != (0, "timestep_4")
    read = scr.complete_restart(valid)
    assert read is (name != "timestep_4"), name
    if read:
        step = int(name[9:])
        break
assert offered == [[], ["timestep_2"], ["timestep_4", "timestep_3"]][run], offered

for step in range(step + 1, step + 3):
    assert scr.need_checkpoint() is True
    name = f"timestep_{step}"
    assert scr.start_output(name, scr.FLAG_NONE | scr.FLAG_CHECKPOINT | scr.FLAG_OUTPUT) is None
    path = scr.route_file(f"ckpt_{step}_{rank}.txt")
    assert type(path) is str
    with open(path, "w") as file:
        file.write(f"{name} of {rank}\n")
    assert scr.complete_output(1) is True and scr.should_exit() is False
raises(scr.complete_output, True)

if run == 2:
    assert scr.drop("timestep_1") is None and scr.delete("timestep_2") is None
    assert scr.current("timestep_3") is None
assert scr.finalize() is None
