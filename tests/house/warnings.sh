#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The other compiler finds nothing to warn about either, nor in what stands in for optional
# libraries; redundancy is the same without them,
# and so is the log but for the database.
#
# Arguments: the source directory, the compiler to take. Skipped where it is not installed.
set -euo pipefail
source=$1 compiler=$2

if ! command -v "$compiler" >/dev/null; then
    echo "no $compiler here"
    exit 77
fi
scratch=$(mktemp -d /tmp/scr-test-XXXXXX)
trap 'rm -rf "$scratch"' EXIT
CC=$compiler meson setup "$scratch/build" "$source" --werror --buildtype=debug -Disal=disabled -Djansson=disabled \
    -Dmariadb=disabled -Dfortran=disabled --wrap-mode=nodownload
meson compile -C "$scratch/build"
# what is another code without them
meson test -t 10 -C "$scratch/build" --print-errorlogs test_redset_gf test_redset_altered test_redset_header \
    test_redset_streams test_redset_folder test_redset_schemes_mpi-np5 test_redset_rebuild_mpi-np4 \
    test_scr_log_plugin test_scr_log
