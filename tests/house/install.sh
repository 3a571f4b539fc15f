#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs SCR from its build directory into a scratch directory, and builds and runs programs against
# what was installed: with the flags that pkg-config gives, once shared, once static; and plainly, with
# the library's name and the place of libraries, where it has to find those that it uses itself.
#
# Arguments: build directory, install prefix, library directory below it, compiler command;
# then LIBRARY=PROGRAM.c=RANKS each. RANKS 0: no MPI. Otherwise it is started with $MPIEXEC; pkg-config gives what it needs of MPI, too,
# and plainly that comes from the wrapper $MPICC. PROGRAM.f90 is built with $MPIFORT.
# $PLUGIN: the file of the plugin for databases, or nothing where it is not built.
set -euo pipefail
build=$1 prefix=$2 libdir=$3
read -ra compiler <<<"$4"
shift 4

scratch=$(mktemp -d /tmp/scr-test-XXXXXX)
trap 'rm -rf "$scratch"' EXIT
meson install -C "$build" --no-rebuild --destdir "$scratch" >"$scratch/log" || {
    cat "$scratch/log"
    exit 1
}
installed=$scratch$prefix

# The .pc files name the prefix; what they name lies in the scratch directory now.
sed -i "s|^prefix=.*|prefix=$installed|" "$installed/$libdir"/pkgconfig/*.pc
export PKG_CONFIG_PATH=$installed/$libdir/pkgconfig

# The linker is to take our own libraries from their archives, all others as it likes.
static_libs() {
    pkg-config --static --libs "$1" | sed -E 's/-l(scr[a-z-]*)/-l:lib\1.a/g'
}

# SCR's own directories stay in the scratch directory as well.
export SCR_CNTL_BASE=$scratch/work SCR_CACHE_BASE=$scratch/work

run() { # PROGRAM RANKS
    if [ "$2" = 0 ]; then
        (cd "$scratch/work" && "$1")
    else
        (cd "$scratch/work" && "$MPIEXEC" -n "$2" "$1")
    fi
}

# A tree file of 24 bytes: header, and the count 0.
empty_tree() {
    printf '\225\037\303\365\0\001\0\001\0\0\0\0\0\0\0\030\0\0\0\0\0\0\0\0'
}

echo "== commands"
for command in kvtree_print scr_print scr_print_hash_file; do
    told=$(empty_tree | LD_LIBRARY_PATH='' "$installed/bin/$command" --verify -)
    if [ "$told" != '-: good, 24 bytes, 0 elements, without checksum' ]; then
        echo "$command says: $told"
        exit 1
    fi
done
told=$(LD_LIBRARY_PATH='' "$installed/bin/scr_halt" --list "$scratch")
if [ "$told" != 'no halt conditions' ]; then
    echo "scr_halt says: $told"
    exit 1
fi
for command in "$installed"/bin/*; do
    page=$installed/share/man/man1/$(basename "$command").1
    [ -f "$page" ] || { echo "$page is not installed" && exit 1; }
done
if command -v man >"$scratch/log" && ! MANPATH=$installed/share/man man -w scr SCR_Drop kvtree_get redset_encode axl_copy filo_fetch >"$scratch/log" 2>&1; then
    cat "$scratch/log"
    exit 1
fi
page=$installed/share/man/man1/kvtree_print.1
library=$(basename "$(readlink -f "$installed/$libdir/libscr-kvtree.so")")
for file in "$page" "$installed/share/man/man1/scr_halt.1" "$installed/share/scr-kvtree/kvtree_totalview.c" "$installed/share/scr/scr.mysql" \
    "$installed/share/gdb/auto-load$prefix/$libdir/$library-gdb.py"; do
    [ -f "$file" ] || { echo "$file is not installed" && exit 1; }
done

# Runs a program that logs to a database that is not there. Its warning shows whether it found the plugin.
check_database() { # PROGRAM ARGUMENT...
    local printed
    rm -rf "$scratch/work" && mkdir "$scratch/work"
    printed=$(cd "$scratch/work" && SCR_LOG_ENABLE=1 SCR_LOG_TXT_ENABLE=0 SCR_LOG_SYSLOG_ENABLE=0 SCR_LOG_DB_ENABLE=1 \
        SCR_LOG_DB_HOST=$scratch/no_socket LD_LIBRARY_PATH='' "$@" 2>&1) || true
    if [[ $printed != *'not logged to the database: connect: '* ]]; then
        echo "$* with a database prints: $printed"
        exit 1
    fi
}
if [ -n "${PLUGIN:-}" ]; then
    echo "== $PLUGIN"
    [ -f "$installed/$libdir/scr/$PLUGIN" ] || { echo "$PLUGIN is not installed" && exit 1; }
    check_database "$installed/bin/scr_log_event" --type NODE_LOST node=n3
fi

# Programs for KVTree find its headers in the directory of ours, and only with the flags of this package.
compatible=$(pkg-config --cflags scr-kvtree-compat)
case " $compatible " in
*" -I$installed/include/kvtree "*) ;;
*)
    echo "pkg-config --cflags scr-kvtree-compat gives $compatible"
    exit 1
    ;;
esac
if pkg-config --cflags scr-kvtree-mpi | grep -F "$installed/include/kvtree"; then
    echo "scr-kvtree-mpi puts kvtree.h in the way of that of KVTree"
    exit 1
fi

# A program is linked to the libraries that its headers show, and not to those below them.
while read -r library shown; do
    pkg-config --exists "$library" || [ "$library" != scrf ] || continue
    linked=$(pkg-config --libs-only-l "$library" | tr ' ' '\n' | grep '^-lscr' | xargs)
    own="-l$library "
    [ "$library" != scr-kvtree-compat ] || own= # it has no library of its own
    if [ "$linked" != "$(xargs <<<"$own$shown")" ]; then
        echo "pkg-config --libs $library gives $linked"
        exit 1
    fi
done <<'END'
scr
scr-axl
scr-filo
scr-filo-mpi -lscr-filo
scr-kvtree
scr-kvtree-compat -lscr-kvtree-mpi -lscr-kvtree
scr-kvtree-mpi -lscr-kvtree
scr-redset -lscr-kvtree
scr-redset-mpi -lscr-redset -lscr-kvtree
scrf
END

if [ -n "${MPIFORT:-}" ]; then
    echo "== scrf.h, by the flags of SCR 3"
    printf "%s\n" "program p" "include 'scrf.h'" "if (SCR_MAX_FILENAME /= 1024) stop 1" "end program" >"$scratch/p.f90"
    "$MPIFORT" -o "$scratch/p" "$scratch/p.f90" -I"$installed/include" -L"$installed/$libdir" -lscrf -Wl,-rpath,"$installed/$libdir"
    LD_LIBRARY_PATH='' "$scratch/p"
fi

for argument; do
    IFS== read -r library source ranks <<<"$argument"
    echo "== $library: $source"
    plain_flags=()
    read -ra cflags <<<"$(pkg-config --cflags "$library")"
    read -ra shared <<<"$(pkg-config --libs "$library")"
    read -ra static <<<"$(static_libs "$library")"
    cc=("${compiler[@]}")
    include=$installed/include
    [[ $source != *.f90 ]] || cc=("$MPIFORT") include=$installed/include/scrf
    "${cc[@]}" -o "$scratch/shared" "$source" "${cflags[@]}" "${shared[@]}"
    "${cc[@]}" -o "$scratch/static" "$source" "${cflags[@]}" "${static[@]}"
    [ "$library" != scr-kvtree-compat ] || library=scr-kvtree-mpi plain_flags=(-I"$installed/include/kvtree" -DKVTREE_COMPAT)
    plain=(-l"$library" "${plain_flags[@]}")
    [[ $library != *-mpi ]] || plain+=(-l"${library%-mpi}") # its header includes that of the serial part
    if [ "$ranks" != 0 ]; then
        read -ra wrapper <<<"$("$MPICC" -show)"
        plain+=("${wrapper[@]:1}")
    fi
    "${cc[@]}" -o "$scratch/plain" "$source" -I"$include" -L"$installed/$libdir" \
        "${plain[@]}" -Wl,-rpath,"$installed/$libdir"
    if readelf -d "$scratch/static" | grep 'NEEDED.*libscr'; then
        echo "the static program still needs a shared library of ours"
        exit 1
    fi
    for program in shared static; do
        rm -rf "$scratch/work" && mkdir "$scratch/work"
        LD_LIBRARY_PATH=$installed/$libdir run "$scratch/$program" "$ranks"
    done
    rm -rf "$scratch/work" && mkdir "$scratch/work"
    LD_LIBRARY_PATH='' run "$scratch/plain" "$ranks"
    [ "$library" != scr ] || [ -z "${PLUGIN:-}" ] || check_database "$MPIEXEC" -n "$ranks" "$scratch/plain"
done
