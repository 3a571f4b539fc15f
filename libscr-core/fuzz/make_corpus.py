#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the inputs from which the fuzz target of libscr-core starts.

    libscr-core/fuzz/make_corpus.py

Configuration files in both forms, and settings and questions of SCR_Config. Inputs named found-* were
found by fuzzing (tests/fuzz.py --merge) and stay.
"""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))

import corpus  # noqa: E402

INPUTS = {
    "empty": "",
    "comment": "# nothing\n\n",
    "lines-param": "SCR_FLUSH=3\nSCR_JOB_NAME = 'a b'\t# c\r\nSCR_PREFIX=$A/x${A}$$\n",
    "lines-mark": "\ufeffSCR_FLUSH=3",
    "lines-quotes": "SCR_JOB_NAME=\"it's\"\nSCR_CLUSTER_NAME='\"'\n",
    "lines-locked": "SCR_LOCKED=SCR_FLUSH,SCR_FETCH\n",
    "lines-groups": "GROUPS=n1 A=1 B='x y'\nGROUPS=n2 A=1\nSCR_GROUP=A\nGROUPS=n3\n",
    "lines-stores": "STORE=/a/../b//c/. COUNT=3 GROUP=WORLD\nSTORES=/ FLUSH=sync MKDIR=0 VIEW=GLOBAL ENABLED=1\n",
    "lines-ckpts": "CKPT=1 INTERVAL=4 TYPE=RS SET_SIZE=4 SET_FAILURES=3\nCKPT=+0 OUTPUT=1 BYPASS=1 ENABLED=1\n"
                   "STORE=/b\nCKPT=2 STORE=/b GROUP=NODE TYPE=PARTNER\n",
    "lines-file": "SCR_COPY_TYPE=FILE\nCKPT=0\n",
    "lines-mistakes": "SCR_FLUSH\n=1\nSCR_FLUSH=1 2\nCKPT=x\nCKPT=0 Q=1 TYPE=ZOR TYPE=XOR\nSTORE=b\nGROUPS=a NODE=1\n"
                      "SCR_X=1\nSCR_FLUSH='\nSCR_PREFIX=$NO\nSCR_PREFIX=\n\1\n",
    "lines-gaps": "CKPT=1 INTERVAL=2\nCKPT=3 STORE=/no GROUP=no\n",
    "yaml-param": "SCR_FLUSH: 3\nSCR_JOB_NAME: 'a b'\nSCR_PREFIX: $A/x\n",
    "yaml-locked": "SCR_LOCKED: [SCR_FLUSH, SCR_FETCH]\n",
    "yaml-mappings": "GROUPS: {n1: {A: 1}, n2: {A: 2}}\nSTORE:\n  /a: {COUNT: 3}\n  /b/: {}\nCKPT: {0: {STORE: /b}}\n",
    "yaml-lists": "STORES:\n- STORE: /a\n  GROUP: A\n- {STORES: /b}\nGROUPS:\n- A: 1\n  GROUPS: n1\nCKPT:\n- CKPT: 0\n",
    "yaml-escapes": 'GROUPS: {"n 1": {"A = #1": "x\\ty"}}\nSCR_JOB_NAME: "\\x27\\x22\\n"\n',
    "yaml-mistakes": "CKPT: {0: 1, x: {}, [1]: {}, 2: {TYPE: [1]}}\nSTORE: [1, {GROUP: A}, {STORE: [1]}]\nGROUPS: 1\n"
                     "SCR_LOCKED: 1\nSCR_FLUSH: {}\nSCR_X: 1\n",
    "yaml-aliases": "CKPT: &a\n  0: {TYPE: RS}\nSCR_JOB_NAME: &b x\nSCR_CLUSTER_NAME: *b\nSTORE: *a\n",
    "yaml-documents": "SCR_FLUSH: 1\n---\nSCR_FLUSH: 2\n",
    "yaml-no": "SCR_FLUSH: [1\n",
    "question": "SCR_FLUSH",
    "question-keys": "CKPT",
    "question-field": "CKPT = 0  SET_SIZE ",
    "question-store": "STORE=/dev/shm COUNT",
    "set-field": "CKPT=0 TYPE=RS SET_SIZE=",
    "unset-kind": "CKPT=",
    "unset-last": "CKPT=0 SET_SIZE=",
    "set-group": "GROUPS=n1 RACK='a b'",
    "set-wrong": "CKPT=0 TYPE=XOR NONE",
}

if __name__ == "__main__":
    corpus.write(__file__, {"fuzz_scr_config": {name: text.encode() for name, text in INPUTS.items()}})
