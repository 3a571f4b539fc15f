/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_TESTS_SNAPSHOT_MPI_H
#define REDSET_TESTS_SNAPSHOT_MPI_H

/* The state of a job after an encode, compared with its state after a rebuild. */

#include "job_mpi.h"

/* The state of a rank after the encode. */
typedef struct snapshot {
    redset *set;
    char name[REDSET_NAME_SIZE];
    unsigned char *file; /* the redundancy file */
    size_t size;
} snapshot;

static inline void encode(job *j, snapshot *s, int set_size, int together)
{
    redset_error err = {""};
    CHECK_INT(job_create(j, j->scheme, set_size, together, &s->set, &err), 0);
    CHECK_INT(job_encode(j, s->set, &err), 0);
    job_name(s->set, s->name);
    s->file = scratch_read(j->folder, s->name, &s->size);
    CHECK(s->file != NULL);
}

static inline void forget(job *j, snapshot *s)
{
    redset_free(s->set);
    free(s->file);
    job_lose(j);
    job_write(j, 0);
    MPI_Barrier(j->comm);
}

/* Checks that everything is as after the encode, byte for byte, and that nothing else
 * exists. */
static inline void check_restored(const job *j, const snapshot *s, int entries)
{
    size_t size;
    unsigned char *file = scratch_read(j->folder, s->name, &size);
    CHECK(job_intact(j));
    CHECK(file && size == s->size && memcmp(file, s->file, size) == 0);
    CHECK_INT(scratch_count(j->folder), entries);
    free(file);
}

static inline void check_manifest(const job *j, const redset_manifest *m,
                                  const snapshot *s)
{
    char *owner;
    CHECK_INT(m->rank, j->rank);
    CHECK_INT(m->ranks, j->ranks);
    CHECK_STR(m->file, s->name);
    CHECK_INT(m->file_size, s->size);
    CHECK_STR(kvtree_get_val(m->about, "NAME"), "ckpt.7");
    CHECK_INT(m->count, j->count);
    CHECK_INT(m->checksums, !j->no_checksums);
    for (int i = 0; i < m->count; i++) {
        CHECK_STR(m->files[i].name, j->files[i].name);
        CHECK_INT(m->files[i].size, j->files[i].size);
        CHECK_INT(m->files[i].crc, j->files[i].crc);
        CHECK_INT(kvtree_size(m->files[i].meta), i == 0);
    }
    if (m->count) {
        CHECK_INT(kvtree_util_get_str(m->files[0].meta, "OWNER", &owner), 0);
        CHECK_INT(atoi(owner), j->rank);
    }
}

/* Checks that a verification predicts the result of a rebuild, and changes nothing. */
static inline void expect_state(const job *j, const snapshot *s, int state, int lost)
{
    redset_error err = {""};
    int told = -1;
    uint64_t before = job_fingerprint(j);
    CHECK_INT(redset_verify(s->set, j->folder, &told, &err), state);
    CHECK((state == 0) == (err.text[0] == 0));
    if (lost >= 0) CHECK_INT(told, lost);
    CHECK(job_fingerprint(j) == before);
}

static inline void expect_rebuilt(const job *j, const snapshot *s, int lost, int entries)
{
    redset_error err = {""};
    redset_manifest *m = NULL;
    int rebuilt = -1;
    uint64_t before = job_fingerprint(j);
    expect_state(j, s, job_any(j, lost) ? REDSET_RECOVERABLE : 0, lost);
    CHECK_INT(redset_rebuild(s->set, j->folder, &m, &rebuilt, &err), 0);
    CHECK_STR(err.text, "");
    CHECK_INT(rebuilt, lost);
    check_restored(j, s, entries);
    if (!lost) CHECK(job_fingerprint(j) == before);
    if (m) check_manifest(j, m, s);
    redset_manifest_free(m);
}

static inline void expect_hopeless(const job *j, const snapshot *s, const char *text)
{
    redset_error err = {""};
    redset_manifest *m = NULL;
    int rebuilt = -1;
    uint64_t before = job_fingerprint(j);
    expect_state(j, s, REDSET_UNRECOVERABLE, -1);
    CHECK_INT(redset_rebuild(s->set, j->folder, &m, &rebuilt, &err),
              REDSET_UNRECOVERABLE);
    if (!strstr(err.text, text)) CHECK_STR(err.text, text);
    CHECK(m == NULL && rebuilt == -1);
    CHECK(job_fingerprint(j) == before);
}

/* Recovers the sets again, as after a restart. */
static inline void recover_again(const job *j, snapshot *s)
{
    redset_error err = {""};
    const redset_place before = *redset_get_place(s->set);
    s->set = redset_free(s->set);
    const char *own = job_has(j, s->name) ? s->name : NULL;
    CHECK_INT(redset_recover(j->comm, j->folder, own, &s->set, &err), 0);
    CHECK_STR(err.text, "");
    CHECK(memcmp(&before, redset_get_place(s->set), sizeof before) == 0);
}

#endif
