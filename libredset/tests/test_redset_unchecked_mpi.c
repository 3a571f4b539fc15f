/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets without checksums: which files are not read, which damage is not detected, and
 * which is. Rebuilds without checksums: test_redset_schemes_mpi.c and
 * test_redset_folder_mpi.c. */
#include "reads.h"
#include "snapshot_mpi.h"

/* ---- bytes read ---- */

static long bytes_of(const job *j)
{
    long sum = 0;
    for (int i = 0; i < j->count; i++)
        sum += (long)j->files[i].size;
    return sum;
}

static void begin(job *j, redset_scheme scheme, int no_checksums, snapshot *s)
{
    j->scheme = scheme;
    j->failures = 1;
    j->no_checksums = no_checksums;
    bytes_read = 0;
    encode(j, s, j->ranks, 1);
}

/* Without redundancy no file is read; with redundancy, each once. A verification reads
 * none. */
static void test_nothing_is_read_for_checksums(job *j, redset_scheme scheme)
{
    for (int none = 0; none < 2; none++) {
        snapshot s;
        redset_error err = {""};
        redset_manifest *m = NULL;
        int lost = -1, rebuilt = -1;
        begin(j, scheme, none, &s);
        CHECK_INT(bytes_read, none && scheme == REDSET_SINGLE ? 0 : bytes_of(j));
        bytes_read = 0;
        recover_again(j, &s);
        CHECK_INT(redset_verify(s.set, j->folder, &lost, &err), 0);
        CHECK_INT(redset_rebuild(s.set, j->folder, &m, &rebuilt, &err), 0);
        CHECK_INT(lost + rebuilt, 0);
        CHECK(none ? bytes_read == 0 : bytes_read >= 2 * bytes_of(j));
        if (m) check_manifest(j, m, &s);
        for (int i = 0; m && none && i < m->count; i++)
            CHECK_INT(m->files[i].crc, 0);
        if (m && none) CHECK_INT(m->file_crc, 0);
        redset_manifest_free(m);
        forget(j, &s);
    }
}

/* ---- detection ---- */

/* Changed bytes are not detected; a changed size is. */
static void test_only_sizes_count(job *j)
{
    snapshot s;
    int hurt = j->rank == 0;
    begin(j, REDSET_XOR, 1, &s);
    int entries = scratch_count(j->folder);
    if (hurt)
        scratch_write(j->folder, j->files[0].name, j->files[0].size, job_seed(j, 99));
    expect_state(j, &s, 0, 0);
    if (hurt)
        scratch_write(j->folder, j->files[0].name, j->files[0].size - 1, job_seed(j, 0));
    expect_rebuilt(j, &s, hurt, entries);
    forget(j, &s);
}

/* Two encodes of files with the same names and sizes are distinguished. */
static void test_encodes_are_not_mixed(job *j)
{
    snapshot old, s;
    char path[1200];
    int first = j->rank == 0;
    begin(j, REDSET_XOR, 1, &old);
    redset_free(old.set);
    encode(j, &s, j->ranks, 1);
    scratch_path(path, j->folder, s.name);
    CHECK(old.size == s.size && memcmp(old.file, s.file, s.size) != 0);
    if (first) scratch_put(path, old.file, old.size);
    if (j->ranks > 2) expect_hopeless(j, &s, "different encodes");
    free(old.file);
    forget(j, &s);
}

int main(int argc, char **argv)
{
    job j;
    check_begin(&argc, &argv);
    job_begin(&j, MPI_COMM_WORLD);
    test_nothing_is_read_for_checksums(&j, REDSET_SINGLE);
    test_nothing_is_read_for_checksums(&j, REDSET_XOR);
    test_only_sizes_count(&j);
    test_encodes_are_not_mixed(&j);
    job_end(&j);
    return check_end();
}
