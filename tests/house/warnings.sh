#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The other compiler finds nothing to warn about either, nor in what stands in for optional
# libraries; redundancy is the same without them,
# and so is the log but for the database.
#
# Arguments: the source folder, the compiler to take. Skipped where it is not installed.
set -euo pipefail
source=$1 compiler=$2

if ! command -v "$compiler" >/dev/null; then
    echo "no $compiler here"
    exit 77
fi
scratch=$(mktemp -d /tmp/scr-test-XXXXXX)
trap 'rm -rf "$scratch"' EXIT
CC=$compiler meson setup "$scratch/build" "$source" --werror -Disal=disabled -Djansson=disabled \
    -Dmariadb=disabled -Dfortran=disabled --wrap-mode=nodownload
meson compile -C "$scratch/build"
meson test -C "$scratch/build" --suite redset --print-errorlogs
meson test -C "$scratch/build" --print-errorlogs test_scr_log_db test_scr_log
