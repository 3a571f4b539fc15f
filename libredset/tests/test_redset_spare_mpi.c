/* SPDX-License-Identifier: BSD-3-Clause */
/* A redundancy file that is written over an obsolete one. */
#include "fault.h"
#include "job_mpi.h"

#include <errno.h>
#include <sys/stat.h>

/* The spare file of an encode, and the expected redundancy file. */
typedef struct fixture {
    job *j;
    redset *set;
    char folder[96];             /* the spare directory */
    char name[REDSET_NAME_SIZE]; /* of the redundancy file */
    char path[1200];             /* of the file in the spare directory */
    char other[128];             /* another file, outside of the spare directory */
    unsigned char *bytes;
    size_t size;
} fixture;

static void setup(fixture *f, job *j, redset_scheme scheme)
{
    redset_error err = {""};
    *f = (fixture){.j = j};
    CHECK_INT(job_create(j, scheme, 3, 1, &f->set, &err), 0);
    CHECK_INT(job_encode(j, f->set, &err), 0);
    job_name(f->set, f->name);
    f->bytes = scratch_read(j->folder, f->name, &f->size);
    snprintf(f->folder, sizeof f->folder, "%s/spare.%d", j->root, j->rank);
    snprintf(f->other, sizeof f->other, "%s/other.%d", j->root, j->rank);
    mkdir(f->folder, 0700);
    scratch_path(f->path, f->folder, f->name);
}

static void teardown(fixture *f)
{
    scratch_remove(f->folder);
    unlink(f->other);
    free(f->bytes);
    redset_free(f->set);
}

static int encode(const fixture *f)
{
    redset_error err = {""};
    const redset_extras extras = {.spare = f->folder};
    const job *j = f->j;
    return redset_encode_with(f->set, j->folder, j->about, j->count, f->j->files, &extras,
                              &err);
}

/* Checks the bytes of the redundancy file, and returns its inode number. */
static ino_t check_encoded(const fixture *f)
{
    struct stat st = {0};
    size_t size = 0;
    char path[1200];
    unsigned char *bytes = scratch_read(f->j->folder, f->name, &size);
    CHECK_INT(size, f->size);
    CHECK(bytes && size == f->size && memcmp(bytes, f->bytes, size) == 0);
    free(bytes);
    scratch_path(path, f->j->folder, f->name);
    CHECK_INT(lstat(path, &st), 0);
    CHECK(S_ISREG(st.st_mode) && st.st_nlink == 1 && (st.st_mode & 07777) == 0600);
    CHECK_INT(access(f->path, F_OK), -1);
    return st.st_ino;
}

static void write_spare(const fixture *f, size_t size, mode_t mode)
{
    scratch_write(f->folder, f->name, size, 77);
    CHECK_INT(chmod(f->path, mode), 0);
}

/* A longer, shorter or empty spare file becomes the new file. */
static void test_written_over(const fixture *f)
{
    const size_t sizes[] = {f->size, f->size + 100000, f->size / 2, 0};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct stat st = {0};
        write_spare(f, sizes[i], 0600);
        CHECK_INT(stat(f->path, &st), 0);
        CHECK_INT(encode(f), 0);
        CHECK(check_encoded(f) == st.st_ino);
    }
}

/* Without a spare file, the encode works as usual. */
static void test_missing(fixture *f)
{
    CHECK_INT(encode(f), 0);
    check_encoded(f);
    rmdir(f->folder);
    CHECK_INT(encode(f), 0);
    check_encoded(f);
    mkdir(f->folder, 0700);
}

/* A spare file that has another name, or that others may read, is never written to. */
static void test_not_ours_alone(const fixture *f)
{
    enum { LINKED, SYMBOLIC, READABLE, KINDS };
    for (int kind = LINKED; kind < KINDS; kind++) {
        struct stat st = {0};
        const char *other = strrchr(f->other, '/') + 1;
        scratch_write(f->j->root, other, 5000, 78);
        CHECK_INT(chmod(f->other, 0600), 0);
        if (kind == LINKED)
            CHECK_INT(link(f->other, f->path), 0);
        else if (kind == SYMBOLIC)
            CHECK_INT(symlink(f->other, f->path), 0);
        else
            write_spare(f, 5000, 0644);
        CHECK_INT(stat(f->path, &st), 0);
        CHECK_INT(encode(f), 0);
        CHECK(check_encoded(f) != st.st_ino || kind == READABLE);
        CHECK(scratch_same(f->j->root, other, 5000, 78));
        unlink(f->other);
    }
}

/* After a failure the spare file is gone, and there is no new file. */
static void test_failure(const fixture *f)
{
    static const struct {
        enum fault_call call;
        int number, error;
    } faults[] = {{FAULT_WRITE, 2, ENOSPC}, {FAULT_CUT, 1, EIO}};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        write_spare(f, f->size + 100000, 0600);
        fault_arm(faults[i].call, faults[i].number, faults[i].error);
        CHECK_INT(encode(f), -faults[i].error);
        fault_disarm();
        CHECK_INT(access(f->path, F_OK), -1);
        CHECK(!job_has(f->j, f->name));
    }
    CHECK_INT(encode(f), 0);
    check_encoded(f);
}

int main(int argc, char **argv)
{
    job j;
    check_begin(&argc, &argv);
    job_begin(&j, MPI_COMM_WORLD);
    for (int scheme = REDSET_SINGLE; scheme <= REDSET_RS; scheme++) {
        fixture f;
        setup(&f, &j, (redset_scheme)scheme);
        test_written_over(&f);
        test_missing(&f);
        test_not_ours_alone(&f);
        test_failure(&f);
        teardown(&f);
    }
    job_end(&j);
    return check_end();
}
