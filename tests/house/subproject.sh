#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Another Meson project takes one library from this repository as a subproject.
#
# Argument: the source directory.
set -euo pipefail
source=$1

scratch=$(mktemp -d /tmp/scr-test-XXXXXX)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/subprojects"
ln -s "$source" "$scratch/subprojects/scr"

cat >"$scratch/meson.build" <<'END'
project('other', 'c')
subproject('scr', default_options: ['components=kvtree', 'tests=false'])
program = executable('other', 'other.c', dependencies: dependency('scr-kvtree'))
test('other', program)
END

cat >"$scratch/other.c" <<'END'
#include <kvtree/kvtree.h>
#include <string.h>

int main(void)
{
    kvtree *tree = kvtree_new();
    kvtree_set_kv(tree, "ANSWER", "42");
    int wrong = strcmp(kvtree_get_val(tree, "ANSWER"), "42");
    kvtree_delete(&tree);
    return wrong != 0;
}
END

meson setup "$scratch/build" "$scratch" --wrap-mode=nodownload
meson compile -C "$scratch/build"
meson test -t 10 -C "$scratch/build" --print-errorlogs other
