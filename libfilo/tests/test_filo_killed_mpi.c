/* SPDX-License-Identifier: BSD-3-Clause */
/* The program is killed, at each system call of a flush over an earlier dataset with the
 * same names. The directory then has the earlier dataset, the new one, or no map, and the
 * next flush works. A flush with an identity is resumed: the new dataset is complete, and
 * nothing else is left. Runs on one rank, in a child process, which needs no other rank
 * for MPI. */
#include "lists.h"
#include "nth_syscall.h"

static char folder[64], prefix[128], state[128];
static filo_error err;
static const filo_options *options;
static nth_result result;

enum { FILES = 3, OLD = 0, NEW = 3, NONE = -1 };

/* The files of rank `rank`, under the names of rank 0. */
static void create(list *l, int rank)
{
    list_create(l, folder, rank, FILES);
    for (int f = 0; f < FILES; f++)
        snprintf(l->name[f], sizeof l->name[f], f == 2 ? "deep/er/%d" : "%d", f);
}

static int flush(int rank)
{
    list l;
    create(&l, rank);
    int rc = filo_flush(MPI_COMM_WORLD, prefix, NULL, FILES, l.files, options, &err);
    return rc;
}

static int flush_new(void *arg)
{
    list l;
    list_init(&l, folder, NEW, FILES);
    for (int f = 0; f < FILES; f++)
        snprintf(l.name[f], sizeof l.name[f], f == 2 ? "deep/er/%d" : "%d", f);
    int rc = filo_flush(MPI_COMM_WORLD, prefix, NULL, FILES, l.files, options, &err);
    return rc != 0;
}

/* Fetches the dataset in the directory, which must be complete. */
static int look(void)
{
    int ranks, count, found;
    filo_file *files;
    list l;
    const filo_options check = {.checksum = 1};
    int rc =
        filo_read_map(MPI_COMM_WORLD, prefix, NULL, &ranks, &count, &files, NULL, &err);
    if (rc == -ENOENT) return NONE;
    CHECK_INT(rc, 0);
    if (rc) return NONE;
    CHECK_INT(count, FILES);
    found = files[2].size == list_size(OLD, 2) ? OLD : NEW;
    list_init(&l, folder, 50, FILES);
    for (int f = 0; f < count; f++)
        files[f].local = strdup(l.local[f]);
    CHECK_INT(filo_fetch(MPI_COMM_WORLD, prefix, count, files, &check, &err), 0);
    for (int f = 0; f < count; f++)
        CHECK(list_file_is_good(l.local[f], found, f));
    list_unlink(&l);
    filo_files_free(count, files);
    return found;
}

/* Directories and files of a stage. */
static int left;

static int count_left(const char *path, const struct stat *st, int type,
                      struct FTW *position)
{
    left += strstr(path, "/stage") != NULL;
    return 0;
}

/* Resumes the flush, whatever the killed one did. */
static void resume(void)
{
    CHECK_INT(flush_new(NULL), 0);
    CHECK_INT(look(), NEW);
    left = 0;
    CHECK_INT(nftw(prefix, count_left, 16, FTW_PHYS), 0);
    CHECK_INT(left, 0);
    CHECK(access(state, F_OK) != 0);
}

/* The number of a call, not counting calls of malloc: these change nothing on disk, and
 * their number varies from flush to flush. */
typedef struct kill_point {
    int at, seen;
} kill_point;

static int kill_there(void *arg, unsigned n, const nth_call *call)
{
    kill_point *k = arg;
    (void)n;
    return !nth_is_memory(call) && ++k->seen == k->at ? NTH_KILL : NTH_GO;
}

static void test_killed(const char *what)
{
    int seen[3] = {0}, order = OLD, runs = 0;
    for (kill_point k = {.at = 1};; k = (kill_point){.at = k.at + 1}) {
        const filo_options *chosen = options, none = {0};
        options = chosen->identity ? &none : chosen;
        CHECK_INT(flush(OLD), 0);
        options = chosen;
        int rc = nth_run(flush_new, NULL, kill_there, &k, &result);
        CHECK_INT(rc, 0);
        if (rc || !nth_was_killed(&result)) break;
        int found = look();
        seen[found == OLD ? 0 : found == NONE ? 1 : 2]++;
        if (found == NEW) order = NEW;
        CHECK(found == NEW || order == OLD); /* the earlier dataset never returns */
        runs++;
        if (options->identity) resume();
        if (options->identity) order = OLD;
    }
    CHECK_INT(look(), NEW);
    CHECK_INT(nth_returned(&result), 0);
    CHECK(seen[0] > 50 && seen[1] > 0 && seen[2] > 0);
    printf("%s: killed at each of %d calls: %d old, %d without a map, %d new\n", what,
           runs, seen[0], seen[1], seen[2]);
}

int main(int argc, char **argv)
{
    const filo_options plain = {.checksum = 1}, packed = {.container = 200000},
                       aligned = {.align = 4096};
    list l;
    check_begin(&argc, &argv);
    check_folder(folder);
    snprintf(prefix, sizeof prefix, "%s/prefix", folder);
    create(&l, NEW);
    options = &plain;
    test_killed("files");
    options = &packed;
    test_killed("containers");
    options = &aligned;
    test_killed("containers of nodes");
    check_remove(prefix);
    filo_options resumed = {.identity = "new", .state = state};
    snprintf(state, sizeof state, "%s/state", folder);
    options = &resumed;
    test_killed("files, resumed");
    resumed.container = 200000;
    test_killed("containers, resumed");
    resumed.container = 0;
    resumed.align = 4096;
    test_killed("containers of nodes, resumed");
    check_remove(folder);
    return check_end();
}
