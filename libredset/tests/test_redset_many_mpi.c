/* SPDX-License-Identifier: BSD-3-Clause */
/* Ten thousand files per process, of which only some can be open at a time. */
#include "check.h"
#include "scratch.h"

#include <redset/redset_mpi.h>
#include <sys/resource.h>

enum { FILES = 10000, IN_FOLDER = 1000, NAME_SIZE = 24, DESCRIPTORS = 256 };

typedef struct job {
    char folder[64];
    redset_file files[FILES];
    char names[FILES][NAME_SIZE];
} job;

/* Each rank has other sizes, of 0 to 12 bytes. */
static size_t size_of(int i)
{
    return (size_t)((i + check_rank) % 13);
}

static unsigned seed_of(int i)
{
    return (unsigned)(check_rank * FILES + i);
}

static void make_files(job *j)
{
    for (int i = 0; i < FILES; i++) {
        snprintf(j->names[i], NAME_SIZE, "%d/file%d", i / IN_FOLDER, i);
        j->files[i] = (redset_file){.name = j->names[i]};
        scratch_write(j->folder, j->names[i], size_of(i), seed_of(i));
    }
}

static void check_files(const job *j)
{
    int same = 0;
    for (int i = 0; i < FILES; i++)
        same += scratch_same(j->folder, j->names[i], size_of(i), seed_of(i));
    CHECK_INT(same, FILES);
}

static redset *protect(job *j, redset_scheme scheme, char name[REDSET_NAME_SIZE])
{
    char node[32];
    redset_error err = {""};
    redset *set = NULL;
    snprintf(node, sizeof node, "node%d", check_rank);
    const redset_config config = {.scheme = scheme,
                                  .set_size = check_ranks,
                                  .failure_group = node,
                                  .failures = scheme == REDSET_RS ? 2 : 1};
    CHECK_INT(redset_create(MPI_COMM_WORLD, &config, &set, &err), 0);
    CHECK_INT(redset_encode(set, j->folder, NULL, FILES, j->files, &err), 0);
    CHECK_STR(err.text, "");
    CHECK_INT(redset_file_name(redset_get_place(set), name), 0);
    return set;
}

/* Rank 0 loses everything, and, with a code for two losses, the last rank as well. */
static void test_ten_thousand_files(job *j, redset_scheme scheme)
{
    char name[REDSET_NAME_SIZE], path[1200];
    redset_error err = {""};
    redset_manifest *m = NULL;
    int rebuilt = -1;
    redset *set = protect(j, scheme, name);
    int two = redset_get_place(set)->failures > 1;
    int lost = check_rank == 0 || (two && check_rank == check_ranks - 1);
    set = redset_free(set);
    if (lost) scratch_remove(j->folder), mkdir(j->folder, 0700);
    CHECK_INT(redset_recover(MPI_COMM_WORLD, j->folder, lost ? NULL : name, &set, &err),
              0);
    if (!set) return;
    CHECK_INT(redset_rebuild(set, j->folder, &m, &rebuilt, &err), 0);
    CHECK_STR(err.text, "");
    CHECK_INT(rebuilt, lost);
    CHECK_INT(m ? m->count : 0, FILES);
    check_files(j);
    CHECK_INT(scratch_count(j->folder), FILES / IN_FOLDER + 1);
    scratch_path(path, j->folder, name);
    CHECK_INT(unlink(path), 0);
    redset_manifest_free(m);
    redset_free(set);
}

int main(int argc, char **argv)
{
    static job j;
    struct rlimit limit;
    check_begin(&argc, &argv);
    scratch_make(j.folder);
    make_files(&j);
    CHECK_INT(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = DESCRIPTORS;
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
    test_ten_thousand_files(&j, REDSET_XOR);
    test_ten_thousand_files(&j, REDSET_RS);
    scratch_remove(j.folder);
    return check_end();
}
