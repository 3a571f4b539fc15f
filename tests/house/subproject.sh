#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Another Meson project takes libraries from this repository as a subproject, with a plain compiler also those under MPI.
#
# Arguments: the source directory, and the option that selects the MPI.
set -euo pipefail
source=$1 mpi=$2

scratch=$(mktemp -d /tmp/scr-test-XXXXXX)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/subprojects"
ln -s "$source" "$scratch/subprojects/scr"

cat >"$scratch/meson.build" <<'END'
project('other', 'c')
subproject('scr', default_options: ['components=scr-core', 'tests=false', 'isal=disabled', 'mariadb=disabled', 'fortran=disabled',
    'python=disabled'])
test('other', executable('other', 'other.c', dependencies: dependency('scr-kvtree')))
executable('rebuilt', 'rebuilt.c', dependencies: dependency('scr-redset-mpi'))
executable('saved', 'saved.c', dependencies: dependency('scr'))
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
cp "$source/libredset/examples/example_redset.c" "$scratch/rebuilt.c"
cp "$source/libscr-core/examples/example_scr.c" "$scratch/saved.c"

meson setup "$scratch/build" "$scratch" --wrap-mode=nodownload "-Dscr:$mpi"
meson compile -C "$scratch/build" other rebuilt saved
meson test -t 10 -C "$scratch/build" --no-rebuild --print-errorlogs other
