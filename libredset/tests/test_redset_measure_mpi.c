/* SPDX-License-Identifier: BSD-3-Clause */
/* Missing files and wrong sizes are found without reading the files. */
#include "reads.h"
#include "snapshot_mpi.h"

#include <errno.h>

/* Checks the state: all ranks agree on it, no file is read, and nothing is changed. */
static void expect_measured(const job *j, const snapshot *s, int state)
{
    redset_error err = {""};
    redset_manifest *m = NULL;
    uint64_t before = job_fingerprint(j);
    bytes_read = 0;
    CHECK_INT(redset_measure(s->set, j->folder, &m, &err), state);
    CHECK_INT(bytes_read, 0);
    CHECK((state == 0) == (err.text[0] == 0) && (state == 0) == (m != NULL));
    CHECK(job_fingerprint(j) == before);
    if (m) check_manifest(j, m, s);
    redset_manifest_free(m);
}

/* Changed bytes are not detected by sizes, only by reading. */
static void test_bytes_are_not_looked_at(job *j)
{
    snapshot s;
    int hurt = j->rank == 0;
    encode(j, &s, j->ranks, 1);
    int entries = scratch_count(j->folder);
    if (hurt)
        scratch_write(j->folder, j->files[0].name, j->files[0].size, job_seed(j, 99));
    expect_measured(j, &s, 0);
    expect_rebuilt(j, &s, hurt, entries);
    forget(j, &s);
}

enum loss { A_FILE, LAST_BYTE, REDUNDANCY, ALL };

static void lose(const job *j, const snapshot *s, enum loss loss)
{
    char path[1200];
    scratch_path(path, j->folder, loss == REDUNDANCY ? s->name : j->files[0].name);
    if (loss == ALL)
        job_lose(j);
    else if (loss == LAST_BYTE)
        CHECK_INT(truncate(path, (off_t)j->files[0].size - 1), 0);
    else
        CHECK_INT(unlink(path), 0);
}

static void test_losses_are_seen(job *j, int count, int state)
{
    for (enum loss loss = A_FILE; loss <= ALL; loss++) {
        snapshot s;
        encode(j, &s, j->ranks, 1);
        expect_measured(j, &s, 0);
        if (j->rank == 0) lose(j, &s, loss);
        if (j->rank == 1 && count == 2) lose(j, &s, REDUNDANCY);
        MPI_Barrier(j->comm);
        expect_measured(j, &s, state);
        forget(j, &s);
    }
}

static void test_without_folder(job *j)
{
    snapshot s;
    redset_error err = {""};
    redset_manifest *m = NULL;
    encode(j, &s, j->ranks, 1);
    CHECK_INT(redset_measure(s.set, "/no/such/folder", &m, &err), -ENOENT);
    CHECK(strstr(err.text, "/no/such/folder") && m == NULL);
    forget(j, &s);
}

int main(int argc, char **argv)
{
    job j;
    check_begin(&argc, &argv);
    job_begin(&j, MPI_COMM_WORLD);
    j.scheme = REDSET_XOR;
    test_bytes_are_not_looked_at(&j);
    test_losses_are_seen(&j, 1, REDSET_RECOVERABLE);
    test_losses_are_seen(&j, 2, REDSET_UNRECOVERABLE);
    test_without_folder(&j);
    job_end(&j);
    return check_end();
}
