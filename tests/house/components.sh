#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Configures, builds and tests libkvtree alone, and libredset and libfilo without their MPI parts, where neither MPI nor
# libyaml can be found; and then builds, with libyaml, the commands of tools/, whose tests run where all is built.
#
# Argument: the source directory.
set -euo pipefail
source=$1

scratch=$(mktemp -d /tmp/scr-test-XXXXXX)
trap 'rm -rf "$scratch"' EXIT

# Only these two packages exist for pkg-config.
mkdir "$scratch/pc"
for package in zlib cmocka; do
    ln -s "$(pkg-config --variable=pcfiledir $package)/$package.pc" "$scratch/pc/"
done
yaml=$(pkg-config --variable=pcfiledir yaml-0.1)/yaml-0.1.pc
export PKG_CONFIG_LIBDIR=$scratch/pc
unset PKG_CONFIG_PATH

# And the programs of MPI do not.
mkdir "$scratch/bin"
for program in mpicc mpiexec $(compgen -c mpi | sort -u); do
    printf '#!/bin/sh\necho "%s was used" >>%s\nexit 1\n' $program "$scratch/used" >"$scratch/bin/$program"
    chmod +x "$scratch/bin/$program"
done
export PATH=$scratch/bin:$PATH

# Builds and tests one component; the libraries must be those named.
build_alone() {
    local component=$1 libraries=$2 built
    shift 2
    meson setup "$scratch/$component" "$source" -Dcomponents="$component" --buildtype=debug \
        --wrap-mode=nodownload "$@"
    meson compile -C "$scratch/$component"
    meson test -t 10 -C "$scratch/$component" --suite "$component" --print-errorlogs
    built=$(find "$scratch/$component" -name 'lib*.so' -printf '%f\n' | sort | tr '\n' ' ')
    if [ "$built" != "$libraries " ]; then
        echo "$component without MPI: built $built"
        exit 1
    fi
}

build_alone kvtree libscr-kvtree.so
build_alone redset "libscr-kvtree.so libscr-redset.so" -Dmpi=disabled
build_alone filo "libscr-axl.so libscr-filo.so libscr-kvtree.so" -Dmpi=disabled
ln -s "$yaml" "$scratch/pc/"
meson setup "$scratch/tools" "$source" -Dcomponents=tools -Dmpi=disabled -Dtests=false --buildtype=debug \
    --wrap-mode=nodownload
meson compile -C "$scratch/tools"
commands=$(find "$scratch/tools/tools" -maxdepth 1 -type f -name 'scr_*')
for command in $commands; do
    "$command" --version
    if readelf -d "$command" | grep 'NEEDED.*mpi'; then
        echo "$command needs MPI"
        exit 1
    fi
done
[ -x "$scratch/tools/tools/scr_halt" ]
if meson setup "$scratch/scr" "$source" -Dcomponents=scr-core -Dmpi=disabled >"$scratch/log" ||
    ! grep -q 'scr-core cannot be built with -Dmpi=disabled' "$scratch/log"; then
    cat "$scratch/log"
    exit 1
fi
if [ -e "$scratch/used" ]; then
    cat "$scratch/used"
    exit 1
fi
