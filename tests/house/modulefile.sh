#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# `module load scr` sets the paths of the installation, and `module unload scr` takes them back: by environment-modules and by
# Lmod, whichever is there.
#
# Arguments: the module file that was built, install prefix, library directory below it. Skipped without both.
set -euo pipefail
file=$1 prefix=$2 libdir=$3

systems=()
for command in "$(command -v modulecmd || true)" "${LMOD_CMD:-/usr/share/lmod/lmod/libexec/lmod}"; do
    if [ -x "$command" ]; then
        systems+=("$command")
    fi
done
if [ ${#systems[@]} = 0 ]; then
    echo "neither environment-modules nor Lmod is here"
    exit 77
fi
scratch=$(mktemp -d /tmp/scr-test-XXXXXX)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/scr"
# the real prefix can be in PATH already
sed "s|\"$prefix|\"$scratch/opt|" "$file" >"$scratch/scr/$(basename "$file")"
prefix=$scratch/opt
unset LOADEDMODULES _LMFILES_ LD_LIBRARY_PATH PKG_CONFIG_PATH CMAKE_PREFIX_PATH
export MODULEPATH=$scratch HOME=$scratch
before=$PATH

expect() { # NAME VALUE
    if [ "${!1-}" != "$2" ]; then
        echo "$1 is ${!1-}, not $2"
        exit 1
    fi
}

for system in "${systems[@]}"; do
    echo "$system"
    eval "$("$system" bash load scr)"
    expect PATH "$prefix/bin:$before"
    expect LD_LIBRARY_PATH "$prefix/$libdir"
    expect PKG_CONFIG_PATH "$prefix/$libdir/pkgconfig"
    expect CMAKE_PREFIX_PATH "$prefix"
    eval "$("$system" bash unload scr)"
    expect PATH "$before"
    expect LD_LIBRARY_PATH ''
done
