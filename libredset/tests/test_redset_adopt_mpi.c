/* SPDX-License-Identifier: BSD-3-Clause */
/* Other numbers of processes continue with an encode. Everything is drawn from a seed:
 * the numbers of processes that encode and that adopt, schemes, sets, files, which
 * process acts for which rank, and the losses and damage. What the scheme can rebuild is
 * restored byte for byte on the process that acts for it; a larger loss gives the verdict
 * everywhere.
 *
 * usage: mpiexec -n N test_redset_adopt_mpi [SEED [ROUNDS]] */
#include "check.h"
#include "scratch.h"
#include "src/codec/flow.h"

#include <errno.h>
#include <redset/redset_mpi.h>

enum { RANKS = 8, FILES = 3 };

/* The files that one rank encoded. All processes know this of all ranks. */
typedef struct encoded {
    redset_place place;
    char file[REDSET_NAME_SIZE];
    int count;
    size_t size[FILES];
    int lost;  /* caused by the test */
    int given; /* its redundancy file is named to redset_adopt */
    int actor;
} encoded;

static char root[64];
static encoded all[RANKS];
static int ranks; /* number of ranks that encoded */
static redset_error err;

/* ---- between libredset and MPI ---- */

static int left; /* number of communicators until the one that fails; 0: none fails */

/* Makes the call in any case, because other processes wait for this one. */
static int result(int rc, MPI_Comm *made)
{
    if (rc != MPI_SUCCESS || left == 0 || --left > 0) return rc;
    PMPI_Comm_free(made);
    return MPI_ERR_INTERN;
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *made)
{
    return result(PMPI_Comm_dup(comm, made), made);
}

int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made)
{
    return result(PMPI_Comm_create_group(comm, group, tag, made), made);
}

static int groupless; /* this process makes no group */

int MPI_Group_incl(MPI_Group from, int count, const int process[], MPI_Group *made)
{
    int rc = PMPI_Group_incl(from, count, process, made);
    if (rc != MPI_SUCCESS || !groupless) return rc;
    groupless = 0;
    PMPI_Group_free(made);
    return MPI_ERR_INTERN;
}

/* ---- chance, the same on all processes ---- */

static uint64_t chance;

static int draw(int below)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return (int)((chance * 0x2545f4914f6cdd1du >> 33) % (unsigned)below);
}

static size_t draw_size(void)
{
    static const int most[] = {1, 100, 20000, 700000};
    return (size_t)draw(most[draw(4)]);
}

/* ---- files ---- */

static const char *folder_of(int process)
{
    static char path[80];
    snprintf(path, sizeof path, "%s/%d", root, process);
    return path;
}

static const char *name_of(int rank, int i)
{
    static char name[32];
    snprintf(name, sizeof name, "%s/r%d.f%d", i ? "deep/er" : "top", rank, i);
    return name;
}

static unsigned seed_of(int rank, int i)
{
    return (unsigned)(10 * rank + i + 1);
}

/* Moves a file, as if it had been found on another node. */
static void move_to_actor(const encoded *e, const char *name)
{
    char from[1200], to[1200], folder[1300];
    scratch_path(from, folder_of((int)(e - all)), name);
    scratch_path(to, folder_of(RANKS + e->actor), name);
    snprintf(folder, sizeof folder, "%s", to);
    *strrchr(folder, '/') = 0;
    mkdir(folder_of(RANKS + e->actor), 0700);
    for (char *slash = strchr(folder + strlen(root) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(folder, 0700);
        *slash = '/';
    }
    mkdir(folder, 0700);
    CHECK(rename(from, to) == 0 || errno == ENOENT);
}

/* ---- encode ---- */

static void encode(int rank, redset_scheme scheme, int set_size, int together,
                   int failures)
{
    char node[16], names[FILES][32];
    redset *set = NULL;
    redset_file files[FILES] = {{0}};
    encoded *e = &all[rank];
    snprintf(node, sizeof node, "node%d", rank / together);
    const redset_config config = {.scheme = scheme,
                                  .set_size = set_size,
                                  .failure_group = node,
                                  .piece = 4096,
                                  .failures = failures};
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, rank < ranks, rank, &comm);
    if (rank < ranks) {
        mkdir(folder_of(rank), 0700);
        for (int i = 0; i < e->count; i++) {
            snprintf(names[i], sizeof names[i], "%s", name_of(rank, i));
            scratch_write(folder_of(rank), names[i], e->size[i], seed_of(rank, i));
            files[i].name = names[i];
        }
        CHECK_INT(redset_create(comm, &config, &set, &err), 0);
        CHECK_INT(redset_encode(set, folder_of(rank), NULL, e->count, files, &err), 0);
        e->place = *redset_get_place(set);
        redset_file_name(&e->place, e->file);
        redset_free(set);
    }
    MPI_Comm_free(&comm);
    for (int r = 0; r < ranks; r++) {
        MPI_Bcast(&all[r].place, sizeof all[r].place, MPI_BYTE, r, MPI_COMM_WORLD);
        MPI_Bcast(all[r].file, sizeof all[r].file, MPI_CHAR, r, MPI_COMM_WORLD);
    }
}

/* ---- damage ---- */

static void damage(encoded *e, int kind)
{
    char path[1200];
    const int rank = (int)(e - all), i = e->count ? draw(e->count) : 0;
    const int has_bytes = e->count && e->size[i] > 0;
    const char *folder = folder_of(rank);
    if (e->lost) return;
    e->lost = 1;
    if (kind == 0 && has_bytes) {
        if (check_rank == 0) scratch_flip(folder, name_of(rank, i), e->size[i] / 2);
    } else if (kind == 1 && e->count) {
        scratch_path(path, folder, name_of(rank, i));
        if (check_rank == 0) CHECK(unlink(path) == 0);
    } else if (kind == 2) {
        e->given = 0; /* the file still exists */
    } else {
        if (check_rank == 0) scratch_remove(folder);
        e->given = draw(2);
    }
}

/* Whether all losses can be rebuilt. */
static int is_recoverable(void)
{
    for (int r = 0; r < ranks; r++) {
        uint8_t lost[RANKS] = {0};
        const redset_shape shape = redset_place_shape(&all[r].place);
        for (int other = 0; other < ranks; other++)
            if (all[other].place.set == all[r].place.set)
                lost[all[other].place.member] = (uint8_t)all[other].lost;
        if (!redset_shape_can_rebuild(&shape, lost)) return 0;
    }
    return 1;
}

static int set_is_lost(int rank)
{
    int lost = 0;
    for (int other = 0; other < ranks; other++)
        lost += all[other].place.set == all[rank].place.set && all[other].lost;
    return lost;
}

/* ---- adopt ---- */

static int files_are_right(int rank)
{
    int right = 1;
    for (int i = 0; i < all[rank].count; i++)
        right &= scratch_same(folder_of(RANKS + all[rank].actor), name_of(rank, i),
                              all[rank].size[i], seed_of(rank, i));
    return right;
}

static void expect_adopted(const redset_acted *acted)
{
    const encoded *e = &all[acted->rank];
    CHECK(acted->manifest != NULL);
    if (!acted->manifest) return;
    CHECK_INT(acted->manifest->rank, acted->rank);
    CHECK_INT(acted->manifest->count, e->count);
    CHECK_STR(acted->manifest->file, e->file);
    CHECK_INT(acted->rebuilt, e->lost);
    CHECK(files_are_right(acted->rank));
}

/* The last reported progress. */
typedef struct seen {
    uint64_t done, total;
    int calls;
} seen;

static void see(void *arg, uint64_t done, uint64_t total)
{
    seen *s = arg;
    CHECK(done > s->done && done <= total && total >= s->total);
    *s = (seen){done, total, s->calls + 1};
}

static int none_is_lost(void)
{
    int lost = 0;
    for (int r = 0; r < ranks; r++)
        lost += all[r].lost;
    return !lost;
}

/* Number of communicators that a process needs: two in any case. */
static int wanted_of(int process)
{
    for (int r = 0; r < ranks; r++)
        if (all[r].actor == process && set_is_lost(r)) return 3;
    return 2;
}

/* On one process, MPI fails to create the n-th communicator: no process blocks, and
 * nothing is rebuilt. */
static void adopt_without_communicator(int process, MPI_Comm comm, int n, int count,
                                       redset_acted list[])
{
    int processes;
    MPI_Comm_size(comm, &processes);
    if (wanted_of(n % processes) < n) return;
    if (process == n % processes) left = n;
    int rc = redset_adopt(comm, folder_of(RANKS + process), ranks, count, list, &err);
    CHECK_INT(left, 0);
    left = 0;
    CHECK_INT(rc, n == 2 ? -EIO : -ECOMM);
    for (int i = 0; i < count; i++)
        CHECK(list[i].manifest == NULL);
}

/* Fails to create the group of processes of a set, on one process. */
static void adopt_without_group(int process, MPI_Comm comm, int count,
                                redset_acted list[])
{
    if (wanted_of(0) < 3) return;
    groupless = process == 0;
    int rc = redset_adopt(comm, folder_of(RANKS + process), ranks, count, list, &err);
    CHECK_INT(groupless, 0);
    CHECK_INT(rc, -ECOMM);
    for (int i = 0; i < count; i++)
        CHECK(list[i].manifest == NULL);
}

static void adopt(int process, MPI_Comm comm)
{
    seen moved = {0};
    redset_acted list[RANKS] = {{0}};
    int count = 0;
    mkdir(folder_of(RANKS + process), 0700);
    for (int r = 0; r < ranks; r++)
        if (all[r].actor == process)
            list[count++] =
                (redset_acted){.rank = r, .file = all[r].given ? all[r].file : NULL};
    for (int n = 1; n <= 3 && is_recoverable(); n++)
        adopt_without_communicator(process, comm, n, count, list);
    if (is_recoverable()) adopt_without_group(process, comm, count, list);
    const int wanted = is_recoverable() ? 0 : REDSET_UNRECOVERABLE;
    int rc = redset_adopt_with(comm, folder_of(RANKS + process), ranks, count, list, see,
                               &moved, &err);
    CHECK_INT(rc, wanted);
    if (none_is_lost()) CHECK(moved.done == moved.total);
    if (rc != wanted) fprintf(stderr, "%s\n", err.text);
    for (int i = 0; i < count; i++) {
        if (!rc) expect_adopted(&list[i]);
        /* after an unrecoverable loss, remaining files are unchanged */
        if (rc) CHECK(list[i].manifest == NULL);
        if (rc && !set_is_lost(list[i].rank)) CHECK(files_are_right(list[i].rank));
        redset_manifest_free(list[i].manifest);
    }
}

/* ---- rounds ---- */

static void draw_round(int *processes)
{
    ranks = 1 + draw(check_ranks < RANKS ? check_ranks : RANKS);
    *processes = 1 + draw(check_ranks);
    memset(all, 0, sizeof all);
    for (int r = 0; r < ranks; r++) {
        all[r].count = draw(FILES + 1);
        for (int i = 0; i < all[r].count; i++)
            all[r].size[i] = draw_size();
        all[r].given = 1;
        all[r].actor = draw(*processes);
    }
}

static void run_round(int losses)
{
    static const redset_scheme schemes[] = {REDSET_XOR, REDSET_XOR,     REDSET_RS,
                                            REDSET_RS,  REDSET_PARTNER, REDSET_SINGLE};
    int processes;
    MPI_Comm comm;
    draw_round(&processes);
    const redset_scheme scheme = schemes[draw(6)];
    const int set_size = 2 + draw(5), together = 1 + draw(3), failures = 1 + draw(3);
    encode(check_rank, scheme, set_size, together, failures);
    for (int i = 0; i < losses; i++)
        damage(&all[draw(ranks)], draw(5));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int r = 0; r < ranks && check_rank == 0; r++) {
        move_to_actor(&all[r], all[r].file);
        for (int i = 0; i < all[r].count; i++)
            move_to_actor(&all[r], name_of(r, i));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, check_rank < processes, check_rank, &comm);
    if (check_rank < processes) adopt(check_rank, comm);
    MPI_Comm_free(&comm);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 2 * RANKS && check_rank == 0; i++)
        scratch_remove(folder_of(i));
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Each rank needs exactly one process that acts for it. */
static void test_wrong_use(void)
{
    redset_acted list[3] = {{.rank = 0}, {.rank = 1}, {.rank = 0}};
    CHECK_INT(redset_adopt(MPI_COMM_WORLD, root, 2, check_rank == 0, list, &err),
              -EINVAL);
    CHECK(strstr(err.text, "no process acts for rank 1 of the encode"));
    CHECK_INT(redset_adopt(MPI_COMM_WORLD, root, 2, check_rank == 0 ? 3 : 0, list, &err),
              -EINVAL);
    CHECK(strstr(err.text, "rank 0 is listed twice"));
    CHECK_INT(redset_adopt(MPI_COMM_WORLD, root, 1, check_rank == 0 ? 2 : 0, list, &err),
              -EINVAL);
    CHECK(strstr(err.text, "no rank 1 among 1"));
    CHECK_INT(redset_adopt(MPI_COMM_NULL, root, 1, 0, list, &err), -EINVAL);
    if (check_ranks < 2) return;
    CHECK_INT(redset_adopt(MPI_COMM_WORLD, root, 1, check_rank < 2, list, &err), -EINVAL);
    CHECK(strstr(err.text, "several processes act for rank 0 of the encode"));
}

/* Protects one file of each rank in a directory that all share. */
static void encode_here(const char *folder, redset_scheme scheme, unsigned seed)
{
    char node[16];
    redset *set = NULL;
    encoded *e = &all[check_rank];
    redset_file file = {.name = name_of(check_rank, 0)};
    snprintf(node, sizeof node, "node%d", check_rank);
    const redset_config config = {
        .scheme = scheme, .set_size = check_ranks, .failure_group = node};
    scratch_write(folder, file.name, 1000, seed + (unsigned)check_rank);
    CHECK_INT(redset_create(MPI_COMM_WORLD, &config, &set, &err), 0);
    CHECK_INT(redset_encode(set, folder, NULL, 1, &file, &err), 0);
    e->place = *redset_get_place(set);
    redset_file_name(&e->place, e->file);
    redset_free(set);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* One process acts for all ranks. The files of the last rank are whole, but of an earlier
 * encode. */
static void test_mixed_encodes(redset_scheme scheme)
{
    char folder[80], old[2][1200], path[2][1200];
    redset_acted list[RANKS] = {{0}};
    const int last = check_ranks - 1;
    snprintf(folder, sizeof folder, "%s", folder_of(0));
    mkdir(folder, 0700);
    encode_here(folder, scheme, 100);
    for (int i = 0; i < 2; i++) {
        scratch_path(path[i], folder, i ? all[check_rank].file : name_of(check_rank, 0));
        snprintf(old[i], sizeof old[i], "%.1190s.old", path[i]);
        if (check_rank == last) CHECK(rename(path[i], old[i]) == 0);
    }
    encode_here(folder, scheme, 200);
    for (int i = 0; i < 2 && check_rank == last; i++)
        CHECK(rename(old[i], path[i]) == 0);
    for (int r = 0; r < check_ranks; r++) {
        MPI_Bcast(all[r].file, sizeof all[r].file, MPI_CHAR, r, MPI_COMM_WORLD);
        list[r] = (redset_acted){.rank = r, .file = all[r].file};
    }
    CHECK_INT(redset_adopt(MPI_COMM_WORLD, folder, check_ranks,
                           check_rank ? 0 : check_ranks, list, &err),
              REDSET_UNRECOVERABLE);
    CHECK(strstr(err.text, "redundancy files are of different encodes"));
    for (int r = 0; r < check_ranks; r++)
        redset_manifest_free(list[r].manifest);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0) scratch_remove(folder);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    check_folder(root);
    chance = argc > 1 ? strtoull(argv[1], NULL, 0) : 20261127;
    int rounds = argc > 2 ? atoi(argv[2]) : 60;
    test_wrong_use();
    if (check_ranks > 1) test_mixed_encodes(REDSET_SINGLE);
    if (check_ranks > 1) test_mixed_encodes(REDSET_XOR);
    for (int i = 0; i < rounds; i++)
        run_round(i % 4);
    check_remove(root);
    return check_end();
}
