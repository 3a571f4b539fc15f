/* SPDX-License-Identifier: BSD-3-Clause */
/* Encoding: the parity equals its definition, and every failure on one rank is a failure
 * of all ranks and leaves nothing behind. Members of sets: test_redset_groups_mpi.c. */
#include "fault.h"
#include "job_mpi.h"
#include <fcntl.h>
#include <zlib.h>

/* ---- sets ---- */

static void expect_no_set(const job *j, const redset_config *config, const char *text)
{
    redset_error err = {""};
    redset *set = NULL;
    CHECK_INT(redset_create(j->comm, config, &set, &err), -EINVAL);
    CHECK_INT(redset_create(j->comm, config, &set, NULL), -EINVAL);
    CHECK(set == NULL);
    if (!strstr(err.text, text)) CHECK_STR(err.text, text);
}

static void test_refused_sets(const job *j)
{
    int last = j->rank == j->ranks - 1;
    char longest[3000];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    const redset_config good = {
        .scheme = REDSET_XOR, .set_size = 4, .failure_group = "n"};
    redset_config bad = good;
    if (last) bad.scheme = (redset_scheme)0;
    expect_no_set(j, &bad, "scheme");
    bad = good;
    if (last) bad.set_size = 1;
    expect_no_set(j, &bad, "set size");
    bad = good;
    if (last) bad.failure_group = NULL;
    expect_no_set(j, &bad, "failure group");
    bad.failure_group = last ? longest : "n";
    expect_no_set(j, &bad, "longer");
    bad = good;
    if (last) bad.piece = SIZE_MAX;
    expect_no_set(j, &bad, "pieces");
    redset *set = NULL;
    CHECK_INT(redset_create(j->comm, &good, &set, NULL), 0);
    CHECK_INT(redset_set_piece(set, ((size_t)1 << 30) + 1), -EINVAL);
    CHECK_INT(redset_set_piece(set, (size_t)1 << 30), 0);
    redset_free(set);
    if (j->ranks == 1) return;
    bad = good;
    if (last) bad.set_size = 5;
    expect_no_set(j, &bad, "differ");
    bad = good;
    if (last) bad.scheme = REDSET_SINGLE;
    expect_no_set(j, &bad, "differ");
    bad = good;
    if (last) bad.no_checksums = 1;
    expect_no_set(j, &bad, "differ");
}

/* Unlimited memory can be specified in several ways. */
static void test_any_memory(job *j)
{
    static const size_t sizes[] = {1, SIZE_MAX / 2, SIZE_MAX / 2 + 1, SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        redset_error err = {""};
        redset *set = NULL;
        redset_config config = {.scheme = REDSET_XOR,
                                .set_size = 2,
                                .failure_group = "n",
                                .memory = sizes[i]};
        CHECK_INT(redset_create(j->comm, &config, &set, &err), 0);
        CHECK_STR(err.text, "");
        redset_free(set);
        if (j->ranks == 1) continue;
        if (j->rank == 0) config.memory = 2;
        expect_no_set(j, &config, "differ");
    }
}

/* ---- parity ---- */

/* The files of a rank (all ranks are on this machine) one after the other, padded to
 * size. */
static unsigned char *file_stream_bytes(const job *j, int rank, size_t size)
{
    job other = {.rank = rank};
    unsigned char *all = calloc(1, size + 1);
    size_t at = 0, got;
    char folder[80];
    job_describe(&other);
    snprintf(folder, sizeof folder, "%s/%d", j->root, rank);
    for (int i = 0; i < other.count; i++) {
        unsigned char *bytes = scratch_read(folder, other.files[i].name, &got);
        memcpy(all + at, bytes, got);
        at += got;
        free(bytes);
    }
    return all;
}

/* Compares the redundancy data with its definition: the files of each member are cut into
 * N-1 chunks, an empty chunk is inserted at the member's number, and this member stores
 * the XOR over all members at its own number. */
static void check_parity(const job *j, const redset *set)
{
    const redset_place *place = redset_get_place(set);
    char name[REDSET_NAME_SIZE];
    redset_error err = {""};
    redset_manifest *m = NULL;
    size_t size, n = (size_t)place->members;
    CHECK_INT(redset_read_header(AT_FDCWD, j->folder, job_name(set, name), &m, &err), 0);
    unsigned char *file = scratch_read(j->folder, name, &size);
    if (!m || !file) return;
    kvtree *tree = kvtree_new();
    char path[1200];
    unsigned long chunk;
    scratch_path(path, j->folder, name);
    int fd = open(path, O_RDONLY);
    ssize_t header = kvtree_fd_read(fd, KVTREE_ANY_SIZE, tree, &err);
    close(fd);
    CHECK_INT(kvtree_util_get_bytecount(tree, "CHUNK", &chunk), 0);
    CHECK_INT(size, (size_t)header + chunk);
    unsigned char *parity = calloc(1, chunk + 1);
    for (size_t i = 0; i < n; i++) {
        if (i == (size_t)place->member) continue;
        int rank = atoi(kvtree_elem_key(kvtree_elem_first(
            kvtree_get_kv_int(kvtree_get(tree, "GROUP"), "RANK", (int)i))));
        unsigned char *data = file_stream_bytes(j, rank, (n - 1) * chunk);
        size_t at = ((size_t)place->member < i ? (size_t)place->member
                                               : (size_t)place->member - 1) *
                    chunk;
        for (size_t k = 0; k < chunk; k++)
            parity[k] ^= data[at + k];
        free(data);
    }
    CHECK(memcmp(file + header, parity, chunk) == 0);
    CHECK_INT(m->file_crc, crc32_z(0, parity, chunk));
    kvtree_delete(&tree);
    redset_manifest_free(m);
    free(parity);
    free(file);
}

static void check_manifest(const job *j, const redset *set)
{
    char name[REDSET_NAME_SIZE];
    redset_error err = {""};
    redset_manifest *m = NULL;
    CHECK_INT(redset_read_header(AT_FDCWD, j->folder, job_name(set, name), &m, &err), 0);
    if (!m) return;
    CHECK_INT(m->rank, j->rank);
    CHECK_INT(m->ranks, j->ranks);
    CHECK_INT(m->count, j->count);
    for (int i = 0; i < m->count; i++) {
        size_t size;
        unsigned char *bytes = scratch_read(j->folder, j->files[i].name, &size);
        CHECK_STR(m->files[i].name, j->files[i].name);
        CHECK_INT(m->files[i].crc, crc32_z(0, bytes, size));
        CHECK_INT(j->files[i].crc, m->files[i].crc);
        CHECK_INT(j->files[i].size, size);
        free(bytes);
    }
    CHECK_STR(kvtree_get_val(m->about, "NAME"), "ckpt.7");
    redset_manifest_free(m);
}

static void test_encode(job *j)
{
    static const size_t pieces[] = {0, 1000, JOB_PIECE};
    for (int set_size = 2; set_size <= j->ranks + 1; set_size += set_size > 3 ? 4 : 1)
        for (int p = 0; p < 3; p++) {
            char node[32];
            redset_error err = {""};
            redset *set = NULL;
            snprintf(node, sizeof node, "n%d", j->rank);
            redset_config config = {.scheme = REDSET_XOR,
                                    .set_size = set_size,
                                    .failure_group = node,
                                    .piece = pieces[p]};
            CHECK_INT(redset_create(j->comm, &config, &set, &err), 0);
            CHECK_INT(job_encode(j, set, &err), 0);
            CHECK_STR(err.text, "");
            check_manifest(j, set);
            check_parity(j, set);
            CHECK(job_intact(j));
            MPI_Barrier(j->comm); /* other ranks still read this rank's files */
            redset_free(set);
            job_lose(j);
            job_write(j, 0);
            MPI_Barrier(j->comm);
        }
}

static void test_single(job *j)
{
    char expected[64], name[REDSET_NAME_SIZE];
    redset_error err = {""};
    redset *set = NULL;
    CHECK_INT(job_create(j, REDSET_SINGLE, 0, 1, &set, &err), 0);
    snprintf(expected, sizeof expected, "1_of_1_in_%d.single", j->rank);
    CHECK_STR(job_name(set, name), expected);
    CHECK_INT(job_encode(j, set, &err), 0);
    check_manifest(j, set);
    redset_free(set);
    job_lose(j);
    job_write(j, 0);
}

/* ---- failures ---- */

/* Checks that encode fails with code everywhere, and leaves nothing but the files. */
static void expect_failure(job *j, redset *set, int code, const char *text)
{
    char name[REDSET_NAME_SIZE];
    redset_error err = {""};
    job before = *j;
    CHECK_INT(job_encode(j, set, &err), code);
    if (!strstr(err.text, text)) CHECK_STR(err.text, text);
    CHECK(!job_has(j, job_name(set, name)));
    CHECK(memcmp(before.files, j->files, sizeof j->files) == 0);
}

static void test_bad_files(job *j, redset *set)
{
    int last = j->rank == j->ranks - 1;
    char own[REDSET_NAME_SIZE];
    redset_error err = {""};
    static const struct {
        const char *name, *text;
        int code;
    } bad[] = {{"missing", "missing", -ENOENT},      {"../x", "..", -EINVAL},
               {"/etc/passwd", "relative", -EINVAL}, {"", "empty", -EINVAL},
               {"folder", "regular", -EINVAL},       {NULL, "empty", -EINVAL}};
    scratch_write(j->folder, "folder/x", 1, 1);
    job all = *j;
    j->count = last ? 1 : j->count;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (last) j->files[0] = (redset_file){.name = bad[i].name};
        expect_failure(j, set, bad[i].code, bad[i].text);
    }
    if (last) j->files[0].name = job_name(set, own);
    expect_failure(j, set, -EINVAL, "redundancy file");
    kvtree *meta = kvtree_new();
    kvtree_util_set_int(meta, "SIZE", 1);
    if (last) j->files[0] = (redset_file){.name = "folder/x", .meta = meta};
    expect_failure(j, set, -EINVAL, "SIZE");
    kvtree_delete(&meta);
    if (last) {
        j->count = 2;
        j->files[0] = j->files[1] = (redset_file){.name = "folder/x"};
    }
    expect_failure(j, set, -EINVAL, "folder/x is listed twice");
    *j = all;
    int count = j->count;
    CHECK_INT(job_encode(j, set, &err), 0); /* the file of this encode is removed as
                                               well */
    if (last) j->count = -1;
    expect_failure(j, set, -EINVAL, "-1 files");
    j->count = count;
    CHECK_INT(redset_encode(set, last ? "/nonexistent" : j->folder, j->about, j->count,
                            j->files, NULL),
              -ENOENT);
    CHECK_INT(
        redset_encode(set, last ? NULL : j->folder, j->about, j->count, j->files, NULL),
        -ENOMEM);
    if (last && j->ranks > 1) {
        kvtree_util_set_int(j->about, "MORE", 1);
        expect_failure(j, set, -EINVAL, "differ");
        kvtree_unset(j->about, "MORE");
    } else if (j->ranks > 1) {
        expect_failure(j, set, -EINVAL, "differ");
    }
}

/* Set by tests in which this rank's largest file changes while it is read. */
static char change_path[1200];
static long change_size;

static void change_file(void)
{
    if (truncate(change_path, change_size) != 0) abort();
}

static void test_changing_file(job *j, redset *set)
{
    for (int grow = 0; grow <= 1; grow++) {
        scratch_path(change_path, j->folder, "rank.ckpt");
        change_size = grow ? 200000 : 50000;
        if (j->rank == 0) fault_arm_event(FAULT_READ, 3, change_file);
        expect_failure(j, set, -ESTALE, "rank.ckpt");
        if (j->rank == 0) CHECK(fault_disarm());
        job_write(j, 0);
    }
}

/* Every call of every kind fails once on one rank. */
static void test_faults(job *j, redset *set, int victim)
{
    char name[REDSET_NAME_SIZE];
    redset_error err = {""};
    int entries = scratch_count(j->folder), total = 0;
    for (int call = FAULT_OPEN; call < FAULT_CALLS; call++)
        for (int n = 1, fired = 1; fired; n += n < 8 ? 1 : n / 2) {
            if (j->rank == victim) fault_arm((enum fault_call)call, n, ENOSPC);
            int rc = job_encode(j, set, &err);
            fired = job_any(j, fault_disarm());
            CHECK_INT(rc, fired ? -ENOSPC : 0);
            CHECK_INT(job_has(j, job_name(set, name)), !fired);
            CHECK_INT(scratch_count(j->folder), entries + !fired);
            CHECK(job_intact(j));
            if (fired && j->ranks > 1) CHECK(strstr(err.text, "rank ") == err.text);
            total += fired;
            char path[1200];
            scratch_path(path, j->folder, name);
            unlink(path);
        }
    CHECK(total >= 10);
}

/* Paths of all ranks' redundancy files. old_ones: number of redundancy files of the
 * earlier encode, which have a second link, that still existed when a new one got its
 * name. */
static char (*own_names)[1200];
static int own_count, old_ones;

static void count_old_ones(void)
{
    struct stat st;
    for (int i = 0; i < own_count; i++)
        old_ones += stat(own_names[i], &st) == 0 && st.st_nlink > 1;
}

/* A process that is killed while new redundancy files get their names leaves no mixture:
 * by then no old file is left, on any rank. */
static void test_again(job *j, redset *set)
{
    char name[REDSET_NAME_SIZE], own[1200], link_path[1200];
    redset_error err = {""};
    CHECK_INT(job_encode(j, set, &err), 0);
    scratch_path(own, j->folder, job_name(set, name));
    snprintf(link_path, sizeof link_path, "%s/old.%d", j->root, j->rank);
    CHECK_INT(link(own, link_path), 0);
    own_count = j->ranks;
    own_names = calloc((size_t)j->ranks, sizeof *own_names);
    MPI_Allgather(own, sizeof own, MPI_CHAR, own_names, sizeof own, MPI_CHAR, j->comm);
    old_ones = 0;
    fault_arm_event(FAULT_RENAME, 1, count_old_ones);
    CHECK_INT(job_encode(j, set, &err), 0);
    CHECK(fault_disarm());
    fault_arm(FAULT_NONE, 0, 0);
    CHECK_INT(old_ones, 0);
    CHECK(job_has(j, name));
    unlink(link_path);
    free(own_names);
}

struct step {
    const job *j;
    char name[REDSET_NAME_SIZE];
    int fails, calls, ready; /* ready: it was called when everything else was done */
};

static int own_step(void *arg, redset_error *err)
{
    struct step *s = arg;
    s->calls++;
    s->ready = job_has(s->j, s->name);
    for (int i = 0; i < s->j->count; i++)
        s->ready &= s->j->files[i].size == 0 || s->j->files[i].crc != 0;
    if (!s->fails) return 0;
    snprintf(err->text, sizeof err->text, "its own step");
    return -EPERM;
}

/* The caller's last step: its failure on one rank makes the encode fail on all. */
static void test_own_step(job *j, redset *set)
{
    redset_error err = {""};
    for (int fails = 1; fails >= 0; fails--) {
        struct step s = {.j = j, .fails = fails && j->rank == j->ranks - 1};
        const redset_extras extras = {.last = own_step, .arg = &s};
        job_name(set, s.name);
        for (int i = 0; i < j->count; i++)
            j->files[i].crc = 0;
        CHECK_INT(redset_encode_with(set, j->folder, j->about, j->count, j->files,
                                     &extras, &err),
                  fails ? -EPERM : 0);
        CHECK_INT(s.calls, 1);
        CHECK(s.ready);
        CHECK((strstr(err.text, "its own step") != NULL) == fails);
        CHECK_INT(job_has(j, s.name), !fails);
        err.text[0] = 0;
    }
    check_manifest(j, set);
}

/* With unsynced nothing is synced, also when an earlier file is replaced. */
static void test_unsynced(job *j, redset_scheme scheme)
{
    redset_error err = {""};
    for (int unsynced = 0; unsynced < 2; unsynced++) {
        redset *set = NULL;
        j->unsynced = unsynced;
        CHECK_INT(job_create(j, scheme, 3, 1, &set, &err), 0);
        for (int again = 0; again < 2; again++) {
            fault_arm(FAULT_SYNC, 1, EIO);
            CHECK_INT(job_encode(j, set, &err), unsynced ? 0 : -EIO);
            CHECK_INT(fault_disarm(), !unsynced);
        }
        if (unsynced) check_manifest(j, set);
        redset_free(set);
    }
    j->unsynced = 0;
}

/* Changes and failures during an encode, with any scheme. */
static void test_trouble(job *j, redset_scheme scheme)
{
    redset_error err = {""};
    redset *set = NULL;
    j->failures = 2;
    CHECK_INT(job_create(j, scheme, 3, 1, &set, &err), 0);
    test_again(j, set);
    test_own_step(j, set);
    test_changing_file(j, set);
    test_faults(j, set, 0);
    test_faults(j, set, j->ranks - 1);
    redset_free(set);
    test_unsynced(j, scheme);
}

int main(int argc, char **argv)
{
    job j;
    redset_error err = {""};
    redset *set = NULL;
    check_begin(&argc, &argv);
    job_begin(&j, MPI_COMM_WORLD);
    test_refused_sets(&j);
    test_any_memory(&j);
    test_encode(&j);
    test_single(&j);
    CHECK_INT(job_create(&j, REDSET_XOR, 3, 1, &set, &err), 0);
    test_bad_files(&j, set);
    for (int scheme = REDSET_PARTNER; scheme <= REDSET_RS; scheme++)
        test_trouble(&j, (redset_scheme)scheme);
    CHECK_INT(job_encode(&j, set, &err), 0);
    check_manifest(&j, set);
    redset_free(set);
    job_end(&j);
    return check_end();
}
