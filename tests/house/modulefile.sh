#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# `module load scr` sets the paths of the installation, and `module unload scr` takes them back.
#
# Arguments: the module file that was built, install prefix, library directory below it. Skipped without modulecmd.
set -euo pipefail
file=$1 prefix=$2 libdir=$3

if ! command -v modulecmd >/dev/null; then
    echo "no environment-modules here"
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

eval "$(modulecmd bash load scr)"
expect PATH "$prefix/bin:$before"
expect LD_LIBRARY_PATH "$prefix/$libdir"
expect PKG_CONFIG_PATH "$prefix/$libdir/pkgconfig"
expect CMAKE_PREFIX_PATH "$prefix"
eval "$(modulecmd bash unload scr)"
expect PATH "$before"
expect LD_LIBRARY_PATH ''
