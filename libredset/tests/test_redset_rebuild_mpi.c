/* SPDX-License-Identifier: BSD-3-Clause */
/* Rebuild: each member lost in turn and in each way, more losses than can be rebuilt, a
 * mix of encodes, and failures of single calls while rebuilding. */
#include "fault.h"
#include "snapshot_mpi.h"

static void test_nothing_lost(job *j)
{
    snapshot s;
    encode(j, &s, 3, 1);
    expect_rebuilt(j, &s, 0, scratch_count(j->folder));
    forget(j, &s);
}

/* Each rank's directory in turn is lost; with nodes of several ranks, each node's. */
static void test_each_lost(job *j, int set_size, int together)
{
    snapshot s;
    if (j->ranks < 2 * together) return;
    encode(j, &s, set_size, together);
    int entries = scratch_count(j->folder);
    for (int node = 0; node < j->ranks / together; node++) {
        int lost = j->rank / together == node;
        if (lost) job_lose(j);
        expect_rebuilt(j, &s, lost, entries);
    }
    forget(j, &s);
}

/* One member of every set at once. */
static void test_one_of_each_set(job *j)
{
    snapshot s;
    if (j->ranks < 2) return;
    encode(j, &s, 2, 1);
    int entries = scratch_count(j->folder);
    const redset_place *place = redset_get_place(s.set);
    int lost = place->member == place->set % place->members;
    if (lost) job_lose(j);
    expect_rebuilt(j, &s, lost, entries);
    forget(j, &s);
}

/* Damage short of a lost directory. Rank 0 has one file, and its redundancy file ends
 * with parity. */
static void damage(const job *j, const snapshot *s, int kind)
{
    char path[1200];
    switch (kind) {
    case 0:
        scratch_flip(j->folder, "rank.ckpt", 77777);
        break;
    case 1:
        scratch_flip(j->folder, s->name, s->size - 1);
        break;
    case 2:
        scratch_flip(j->folder, s->name, 40);
        break;
    case 3:
        scratch_path(path, j->folder, s->name);
        if (truncate(path, (off_t)s->size - 1) != 0) abort();
        break;
    case 4:
        scratch_path(path, j->folder, "rank.ckpt");
        if (truncate(path, 5) != 0) abort();
        break;
    case 5:
        scratch_path(path, j->folder, "rank.ckpt");
        unlink(path);
        break;
    case 6:
        scratch_path(path, j->folder, s->name);
        unlink(path);
        break;
    }
}

static void test_damage(job *j)
{
    snapshot s;
    if (j->ranks < 2) return;
    encode(j, &s, j->ranks, 1);
    int entries = scratch_count(j->folder);
    for (int kind = 0; kind < 7; kind++) {
        if (j->rank == 0) damage(j, &s, kind);
        expect_rebuilt(j, &s, j->rank == 0, entries);
    }
    forget(j, &s);
}

/* A well-formed header of another set under the right name is damage too. */
static void test_forged(job *j)
{
    snapshot s;
    if (j->ranks < 4) return;
    encode(j, &s, j->ranks, 1);
    int entries = scratch_count(j->folder);
    if (j->rank == 3) job_forge(j, s.name, job_swap_members);
    expect_rebuilt(j, &s, j->rank == 3, entries);
    forget(j, &s);
}

static void test_two_lost(job *j)
{
    char text[100];
    snapshot s;
    if (j->ranks < 2) return;
    encode(j, &s, j->ranks, 1);
    /* a lost directory, and one flipped bit elsewhere */
    if (j->rank == 0) scratch_flip(j->folder, "rank.ckpt", 5);
    if (j->rank == j->ranks - 1) job_lose(j);
    snprintf(text, sizeof text, "set 0 (XOR over %d ranks) lost members 0 (rank 0), %d",
             j->ranks, j->ranks - 1);
    expect_hopeless(j, &s, text);
    expect_hopeless(j, &s, "rank 0: rank.ckpt has checksum");
    /* everything */
    job_lose(j);
    expect_hopeless(j, &s, "is missing");
    forget(j, &s);
}

/* Two losses in one set; the other set lost one and must not touch it. */
static void test_other_set_untouched(job *j)
{
    snapshot s;
    if (j->ranks < 4) return;
    encode(j, &s, j->ranks / 2, 1);
    const redset_place *place = redset_get_place(s.set);
    if (place->set == 0 || place->member == 1) job_lose(j);
    MPI_Barrier(j->comm);
    expect_hopeless(j, &s, "set 0");
    forget(j, &s);
}

static void test_single(job *j)
{
    redset_error err = {""};
    snapshot s;
    CHECK_INT(job_create(j, REDSET_SINGLE, 0, 1, &s.set, &err), 0);
    CHECK_INT(job_encode(j, s.set, &err), 0);
    job_name(s.set, s.name);
    s.file = scratch_read(j->folder, s.name, &s.size);
    expect_rebuilt(j, &s, 0, scratch_count(j->folder));
    if (j->rank == j->ranks - 1) job_lose(j);
    expect_hopeless(j, &s, "(SINGLE over 1 ranks) lost");
    forget(j, &s);
}

/* A rank has files and the redundancy file of another checkpoint: both are valid, but do
 * not fit the other ranks. */
static void test_mixed(job *j)
{
    redset_error err = {""};
    snapshot s;
    if (j->ranks < 2) return;
    encode(j, &s, j->ranks, 1);
    job_write(j, 500);
    kvtree_util_set_str(j->about, "NAME", "ckpt.8");
    CHECK_INT(job_encode(j, s.set, &err), 0);
    kvtree_util_set_str(j->about, "NAME", "ckpt.7");
    if (j->rank == 0) {
        char path[1200];
        scratch_path(path, j->folder, s.name);
        scratch_put(path, s.file, s.size);
        job_write(j, 0);
    }
    MPI_Barrier(j->comm);
    expect_hopeless(j, &s, "different encodes");
    if (j->ranks > 2) {
        if (j->rank == j->ranks - 1) job_lose(j);
        expect_hopeless(j, &s, "different encodes");
    }
    forget(j, &s);
}

static void test_no_folder(job *j)
{
    redset_error err = {""};
    redset_manifest *m = NULL;
    int rebuilt;
    snapshot s;
    encode(j, &s, 3, 1);
    const char *folder = j->rank == j->ranks - 1 ? "/nonexistent" : j->folder;
    CHECK_INT(redset_rebuild(s.set, folder, &m, &rebuilt, &err), -ENOENT);
    CHECK(strstr(err.text, "/nonexistent") != NULL);
    CHECK(m == NULL);
    forget(j, &s);
}

/* Every call of every kind fails once on one rank while rank 0 is rebuilt. A failure to
 * read a survivor's data is a second loss, detected before anything is changed. */
static void test_faults(job *j, int victim)
{
    redset_error err = {""};
    int total = 0;
    snapshot s;
    if (j->ranks < 2) return;
    encode(j, &s, j->ranks, 1);
    for (int call = FAULT_OPEN; call < FAULT_CALLS; call++)
        for (int n = 1, fired = 1; fired; n += n < 8 ? 1 : n / 2) {
            redset_manifest *m = NULL;
            int rebuilt = -1;
            if (j->rank == 0) job_lose(j);
            uint64_t before = job_fingerprint(j);
            if (j->rank == victim) fault_arm((enum fault_call)call, n, EIO);
            int rc = redset_rebuild(s.set, j->folder, &m, &rebuilt, &err);
            fired = job_any(j, fault_disarm());
            CHECK(job_agreed(j, rc));
            /* the lost rank's search for its header may fail unnoticed, and a survivor
             * that cannot be read is rebuilt where two may be lost */
            if (rc == 0 && fired)
                CHECK(call == FAULT_OPEN || (call == FAULT_READ && victim != 0));
            if (rc == 0 && fired && victim != 0) CHECK(j->scheme != REDSET_XOR);
            int spare = j->scheme != REDSET_XOR && j->ranks > 2;
            /* except for the directory itself */
            if (victim != 0 && spare && (call == FAULT_READ || call == FAULT_OPEN))
                CHECK_INT(rc, call == FAULT_OPEN && n == 1 ? -EIO : 0);
            if (rc == 0) CHECK(job_intact(j));
            if (rc) CHECK(fired && (rc == -EIO || rc == REDSET_UNRECOVERABLE));
            if (rc) CHECK(m == NULL && rebuilt == -1);
            if (j->rank != 0 && rebuilt != 1) CHECK(job_fingerprint(j) == before);
            if (rc && j->rank == 0 && !job_has(j, "rank.ckpt"))
                CHECK_INT(scratch_count(j->folder), 0);
            if (rc && job_has(j, "rank.ckpt")) CHECK(job_intact(j));
            redset_manifest_free(m);
            total += fired;
        }
    CHECK(total >= (victim == 0 ? 10 : 5));
    if (j->rank == 0) job_lose(j);
    expect_rebuilt(j, &s, j->rank == 0, scratch_count(j->folder) + 2 * (j->rank == 0));
    forget(j, &s);
}

/* A byte of a survivor's file that changes while a rebuild runs. */
static char change_path[1200];
static off_t change_offset;

static void change_file(void)
{
    int fd = open(change_path, O_WRONLY);
    if (fd < 0 || pwrite(fd, "x", 1, change_offset) != 1) abort();
    close(fd);
}

/* Rank 2 had the right sizes when the rebuild began, but its bytes are changed when they
 * are read. It counts as lost as well: too much for XOR, but not for RS with two
 * failures. */
static void test_change_on_the_way(job *j, redset_scheme scheme, int in_parity)
{
    redset_error err = {""};
    redset_manifest *m = NULL;
    int rebuilt = -1;
    snapshot s;
    if (j->ranks < 4) return;
    j->scheme = scheme;
    j->failures = 2;
    encode(j, &s, j->ranks, 1);
    int entries = scratch_count(j->folder), spare = scheme == REDSET_RS;
    if (j->rank == 0) job_lose(j);
    if (j->rank == 2) {
        scratch_path(change_path, j->folder, in_parity ? s.name : "a/b/c");
        change_offset = in_parity ? (off_t)s.size - 1 : 10;
        fault_arm_event(FAULT_READ, 1, change_file); /* the first read of its data */
    }
    int rc = redset_rebuild(s.set, j->folder, &m, &rebuilt, &err);
    if (j->rank == 2) CHECK(fault_disarm());
    CHECK_INT(rc, spare ? 0 : REDSET_UNRECOVERABLE);
    CHECK(spare || strstr(err.text, "lost members 0 (rank 0), 2 (rank 2)"));
    CHECK(spare || strstr(err.text, in_parity ? "data of 3_of_" : "a/b/c has checksum"));
    if (spare) CHECK_INT(rebuilt, j->rank == 0 || j->rank == 2);
    if (spare) check_restored(j, &s, entries);
    if (!spare && j->rank == 0) CHECK_INT(scratch_count(j->folder), 0);
    redset_manifest_free(m);
    j->scheme = REDSET_XOR;
    forget(j, &s);
}

/* ---- progress ---- */

typedef struct seen {
    uint64_t done, total;
    int calls;
} seen;

static void see(void *arg, uint64_t done, uint64_t total)
{
    seen *s = arg;
    CHECK(done > s->done || s->calls == 0);
    CHECK(done <= total);
    *s = (seen){done, total, s->calls + 1};
}

/* Every rank reads all of its files, or writes all of its lost files, and gets a report
 * of each byte. */
static void test_progress(job *j)
{
    snapshot s;
    redset_error err = {""};
    redset_manifest *m = NULL;
    int rebuilt, lost;
    if (j->ranks < 4) return;
    encode(j, &s, 4, 1);
    for (int wanted = 1; wanted >= 0; wanted--) {
        seen verified = {0}, moved = {0};
        redset_set_progress(s.set, wanted ? see : NULL, &verified);
        CHECK_INT(redset_verify(s.set, j->folder, &lost, &err), 0);
        CHECK(verified.done == verified.total && (verified.calls > 1) == wanted);
        MPI_Barrier(j->comm);
        if (j->rank == 0) job_lose(j);
        redset_set_progress(s.set, wanted ? see : NULL, &moved);
        CHECK_INT(redset_rebuild(s.set, j->folder, &m, &rebuilt, &err), 0);
        CHECK(moved.done == moved.total && moved.total == verified.total);
        m = redset_manifest_free(m);
        redset_set_progress(s.set, NULL, NULL);
    }
    forget(j, &s);
}

int main(int argc, char **argv)
{
    job j;
    check_begin(&argc, &argv);
    job_begin(&j, MPI_COMM_WORLD);
    test_nothing_lost(&j);
    test_each_lost(&j, 2, 1);
    test_each_lost(&j, 3, 1);
    test_each_lost(&j, j.ranks, 1);
    test_each_lost(&j, 2, 2);
    test_one_of_each_set(&j);
    test_damage(&j);
    test_forged(&j);
    test_two_lost(&j);
    test_other_set_untouched(&j);
    test_single(&j);
    test_mixed(&j);
    test_no_folder(&j);
    for (int scheme = REDSET_PARTNER; scheme <= REDSET_RS; scheme++) {
        j.scheme = (redset_scheme)scheme;
        j.failures = 2;
        test_progress(&j);
        test_faults(&j, 0);
        test_faults(&j, j.ranks - 1);
    }
    j.scheme = REDSET_XOR;
    test_change_on_the_way(&j, REDSET_XOR, 0);
    test_change_on_the_way(&j, REDSET_XOR, 1);
    test_change_on_the_way(&j, REDSET_RS, 0);
    test_change_on_the_way(&j, REDSET_RS, 1);
    job_end(&j);
    return check_end();
}
