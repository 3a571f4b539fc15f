#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# SCR is built with another MPI that is installed here, by its package and by its compiler wrapper. A program of that MPI and this SCR,
# built with ours, do not go together: the compiler, SCR_Init or a warning says so. A build with the other MPI runs all tests there.
#
# Arguments: source directory, build directory, name of our MPI; of the other one its name, name for -Dmpi_implementation, package
# of pkg-config, and suffix of programs. Skipped without that package.
set -euo pipefail
source=$1 ours=$2 our_name=$3 name=$4 implementation=$5 package=$6 suffix=$7

if ! pkg-config --exists "$package"; then
    echo "no $name here: pkg-config does not know $package"
    exit 77
fi
scratch=$(mktemp -d /tmp/scr-test-XXXXXX)
trap 'rm -rf "$scratch"' EXIT
theirs=$scratch/build

meson setup "$theirs" "$source" -Dmpi_implementation="$implementation" --buildtype=debug -Dcomponents=scr-core -Dtests=false \
    -Dmariadb=disabled -Dfortran=disabled -Dpython=disabled --wrap-mode=nodownload
meson compile -C "$theirs" hello

export SCR_PREFIX=$scratch/prefix SCR_CNTL_BASE=$scratch/cntl SCR_CACHE_BASE=$scratch/cntl
mkdir "$scratch/prefix" "$scratch/cntl"

# Flags for a plain compiler: of a package, in a build directory of SCR or in general.
flags() { # BUILD PACKAGE
    PKG_CONFIG_PATH=$1/meson-uninstalled pkg-config --cflags --libs "$2"
}
# A program of the other MPI says that text once, and ends with that code, or any.
says() { # TEXT CODE PROGRAM
    local code=0
    "mpiexec$suffix" -n 2 "$3" >"$scratch/log" 2>&1 || code=$?
    if [ "$(grep -cF "$1" "$scratch/log")" != 1 ] || [ "${2:-$code}" != "$code" ]; then
        cat "$scratch/log"
        echo "$3: exit code $code, and not once \"$1\""
        exit 1
    fi
}

echo "== a plain compiler, and the flags of scr.pc"
read -ra words <<<"$(flags "$theirs" scr)"
cc -o "$scratch/hello" "$source/libscr-core/examples/cmake/hello.c" "${words[@]}" -Wl,-rpath,"$theirs/libscr-core"
(cd "$scratch/prefix" && "mpiexec$suffix" -n 2 "$scratch/hello")
[ "$(cat "$scratch"/prefix/hello/rank_*.txt)" = $'hello from rank 0\nhello from rank 1' ]

echo "== the compiler of $name, and an SCR with $our_name"
read -ra words <<<"$(flags "" "$package")"
if cc -c -o "$scratch/hello.o" "$source/libscr-core/examples/cmake/hello.c" -I"$source/libscr-core/include" \
    -I"$ours/libscr-core/include" "${words[@]}" 2>"$scratch/log" || ! grep "#error \"SCR is built with $our_name" "$scratch/log"; then
    cat "$scratch/log"
    echo "no #error"
    exit 1
fi

echo "== the library of $name, and an SCR with $our_name"
cat >"$scratch/other.c" <<'END'
#include <mpi.h>
int SCR_Init(void);
int SCR_Finalize(void);
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rc = SCR_Init() == 1 ? 0 : 1; /* SCR_FAILURE */
    SCR_Finalize();
    MPI_Finalize();
    return rc;
}
END
cc -o "$scratch/other" "$scratch/other.c" "${words[@]}" -L"$ours/libscr-core" -lscr -Wl,-rpath,"$ours/libscr-core"
says '[MPI_DIFFERS]' 0 "$scratch/other"

echo "== mpiexec of $name, and a program of $our_name"
says '[MPI_ALONE]' '' "$ours/libscr-core/hello"

echo "== the compiler wrapper of $name"
CC=mpicc$suffix meson setup "$scratch/wrapped" "$source" -Dcomponents=kvtree -Dmpi=enabled -Dtests=false --wrap-mode=nodownload
meson compile -C "$scratch/wrapped"
cat >"$scratch/tree.c" <<'END'
#include <kvtree/kvtree_mpi.h>
int main(int argc, char **argv)
{
    kvtree *tree = kvtree_new();
    MPI_Init(&argc, &argv);
    int rc = kvtree_bcast(tree, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    kvtree_delete(&tree);
    return rc;
}
END
read -ra words <<<"$(flags "$scratch/wrapped" scr-kvtree-mpi)"
cc -o "$scratch/tree" "$scratch/tree.c" "${words[@]}" -Wl,-rpath,"$scratch/wrapped/libkvtree"
"mpiexec$suffix" -n 2 "$scratch/tree"
