#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# libkvtree alone: configures, builds and tests it where neither MPI nor libyaml can be found.
#
# Argument: the source folder.
set -euo pipefail
source=$1

scratch=$(mktemp -d /tmp/scr-test-XXXXXX)
trap 'rm -rf "$scratch"' EXIT

# Only these two packages exist for pkg-config.
mkdir "$scratch/pc"
for package in zlib cmocka; do
    ln -s "$(pkg-config --variable=pcfiledir $package)/$package.pc" "$scratch/pc/"
done
export PKG_CONFIG_LIBDIR=$scratch/pc
unset PKG_CONFIG_PATH

# And the programs of MPI do not.
mkdir "$scratch/bin"
for program in mpicc mpicc.mpich mpiexec mpiexec.mpich mpichversion; do
    printf '#!/bin/sh\necho "%s was used" >>%s\nexit 1\n' $program "$scratch/used" >"$scratch/bin/$program"
    chmod +x "$scratch/bin/$program"
done
export PATH=$scratch/bin:$PATH

meson setup "$scratch/build" "$source" -Dcomponents=kvtree --wrap-mode=nodownload
meson compile -C "$scratch/build"
meson test -C "$scratch/build" --suite kvtree --print-errorlogs

if [ -e "$scratch/used" ]; then
    cat "$scratch/used"
    exit 1
fi
libraries=$(find "$scratch/build" -name 'lib*.so')
if [ "$(basename -a $libraries)" != libscr-kvtree.so ]; then
    echo "built more than libkvtree without MPI: $libraries"
    exit 1
fi
