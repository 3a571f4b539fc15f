/* SPDX-License-Identifier: BSD-3-Clause */
/* Containers of nodes: the places of all bytes; that every method restores all files; the
 * work that one rank of a node does for all ranks, counted in system calls; and failures.
 */
#include "calls.h"

#include <time.h>

enum { PER_RANK = 4, ALIGN = 4096 };

/* ---- system calls ---- */

static atomic_int full;

/* Seconds slept in naps of libfilo; naps of MPI are shorter. */
static double slept;

int nanosleep(const struct timespec *nap, struct timespec *rest)
{
    double start = MPI_Wtime();
    int rc = (int)syscall(SYS_nanosleep, nap, rest);
    if (nap->tv_nsec > 60000) slept += MPI_Wtime() - start;
    return rc;
}

/* Simulates a full disk, in the middle of the copies. */
static ssize_t write_or_not(ssize_t done)
{
    if (!full) return done;
    errno = ENOSPC;
    return -1;
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    return write_or_not(full ? 0 : syscall(SYS_pwrite64, fd, bytes, size, offset));
}

ssize_t copy_file_range(int in, off64_t *from, int out, off64_t *to, size_t size,
                        unsigned flags)
{
    return write_or_not(
        full ? 0 : syscall(SYS_copy_file_range, in, from, out, to, size, flags));
}

/* ---- lists ---- */

static void begin(list *l, const char *name)
{
    flushed_begin(l, name, PER_RANK);
}

/* Number of nodes. Ranks are dealt out in turn, so the node of a rank is not that of its
 * neighbors. */
static int nodes = 1;

static int node_of(int rank)
{
    return rank % nodes;
}

static int nodes_there(void)
{
    return nodes < check_ranks ? nodes : check_ranks;
}

static filo_options options_of(int per_container, char node[32])
{
    snprintf(node, 32, "node %d", node_of(check_rank));
    return (filo_options){
        .checksum = 1, .align = ALIGN, .nodes = per_container, .node = node};
}

static uint64_t round_up(uint64_t at)
{
    return (at + ALIGN - 1) / ALIGN * ALIGN;
}

/* Checks that the container of a group has the files of all its ranks, each rank at an
 * aligned offset, and zeros between them. */
static void expect_container(int number, int per_container)
{
    char path[256];
    uint64_t at = 0, start = 0;
    int bad = 0;
    snprintf(path, sizeof path, "%s/.scr/ctr.%d.scr", prefix, number);
    FILE *stream = fopen(path, "rb");
    CHECK(stream != NULL);
    for (int n = number * per_container;
         stream && n < (number + 1) * per_container && n < nodes_there(); n++)
        for (int rank = n; rank < check_ranks; rank += nodes) {
            start = round_up(at);
            for (; at < start && !bad; at++)
                bad = fgetc(stream) != 0;
            for (int f = 0; f < PER_RANK; f++)
                for (size_t i = 0; i < list_size(rank, f) && !bad; i++, at++)
                    bad = fgetc(stream) != list_byte(rank, f, i);
        }
    CHECK(!bad && stream && fgetc(stream) == EOF);
    if (stream) fclose(stream);
}

static void expect_containers(int per_container)
{
    char name[64];
    int count = (nodes_there() + per_container - 1) / per_container;
    for (int i = check_rank; i < count; i += check_ranks)
        expect_container(i, per_container);
    snprintf(name, sizeof name, ".scr/ctr.%d.scr", count);
    CHECK(!list_exists(prefix, name));
    CHECK(!list_exists(prefix, ".scr/stage"));
}

/* ---- there and back ---- */

static void round_trip(const char *name, int on_nodes, int per_container, int width,
                       const char *method)
{
    list l;
    char node[32];
    nodes = on_nodes;
    filo_options options = options_of(per_container, node);
    options.width = width;
    options.method = method;
    begin(&l, name);
    CHECK_INT(flush(&l, &options), 0);
    CHECK_STR(err.text, "");
    for (int f = 0; f < l.count; f++)
        CHECK(l.files[f].has_crc);
    MPI_Barrier(MPI_COMM_WORLD);
    expect_containers(per_container);
    flushed_fetch_all(&l);
    list_unlink(&l);
}

static void test_round_trips(void)
{
    round_trip("one", 1, 1, 0, NULL);
    round_trip("two", 2, 1, 0, NULL);
    round_trip("three", 3, 2, 1, NULL);
    round_trip("each", 64, 3, 2, NULL);
    round_trip("all", 64, 64, 0, NULL);
    round_trip("threads", 2, 2, 0, "pthread");
}

/* Without names of nodes, MPI determines the nodes: here there is one. */
static void test_nodes_of_mpi(void)
{
    list l;
    const filo_options options = {.align = 1};
    nodes = 1;
    begin(&l, "mpi");
    CHECK_INT(flush(&l, &options), 0);
    CHECK(list_exists(prefix, ".scr/ctr.0.scr") &&
          !list_exists(prefix, ".scr/ctr.1.scr"));
    flushed_fetch_all(&l);
    list_unlink(&l);
}

/* No rank has any bytes: the container and the files are empty. */
static void test_no_bytes(void)
{
    list l;
    char node[32];
    struct stat st;
    nodes = 2;
    const filo_options options = options_of(1, node);
    begin(&l, "empty");
    list_unlink(&l);
    list_write(l.local[1], "", 0);
    l.files[0] = l.files[1];
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, 1, l.files, &options, &err), 0);
    char path[256];
    snprintf(path, sizeof path, "%s/.scr/ctr.0.scr", prefix);
    CHECK(stat(path, &st) == 0 && st.st_size == 0);
    int ranks, count;
    filo_file *files;
    files = flushed_read_map(&ranks, &count);
    CHECK_INT(count, 1);
    CHECK(unlink(l.local[1]) == 0);
    files[0].local = strdup(l.local[1]);
    CHECK_INT(fetch(count, files, NULL), 0);
    CHECK(stat(l.local[1], &st) == 0 && st.st_size == 0);
    filo_files_free(count, files);
    list_unlink(&l);
}

/* Flushes in different forms follow each other: no container of an earlier form stays. */
static void test_forms(void)
{
    list l;
    char node[32];
    nodes = 2;
    const filo_options options = options_of(1, node), sized = {.container = 20000};
    begin(&l, "forms");
    CHECK_INT(flush(&l, &sized), 0);
    CHECK_INT(flush(&l, &options), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    expect_containers(1);
    CHECK_INT(flush(&l, NULL), 0);
    CHECK(!list_exists(prefix, ".scr/ctr.0.scr") && list_exists(prefix, l.name[0]));
    list_unlink(&l);
}

/* The map of another number of ranks, and one file in many small maps. */
static void test_maps(void)
{
    list l;
    char node[32];
    nodes = 2;
    filo_options options = options_of(1, node);
    begin(&l, "maps");
    options.map_limit = 1;
    CHECK_INT(flush(&l, &options), 0);
    flushed_fetch_all(&l);
    list_unlink(&l);
    begin(&l, "others");
    options.map_limit = 0;
    options.ranks = 2 * check_ranks;
    for (int f = 0; f < l.count; f++)
        l.files[f].rank = 2 * check_rank + f % 2;
    CHECK_INT(flush(&l, &options), 0);
    int ranks, count;
    filo_file *files;
    files = flushed_read_map(&ranks, &count);
    CHECK_INT(ranks, 2 * check_ranks);
    CHECK_INT(count, 2);
    filo_files_free(count, files);
    list_unlink(&l);
}

/* Ranks of a node and of others write one file together; it lies under its name. */
static void test_shared_files(void)
{
    list l;
    char node[32], path[256], whole[] = "deep/whole";
    nodes = 2;
    const filo_options options = options_of(1, node);
    filo_segment segment = {whole, 1000 * (uint64_t)check_rank, 1000};
    begin(&l, "shared");
    unsigned char bytes[1000];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = list_byte(check_rank, 0, i);
    list_write(l.local[0], bytes, sizeof bytes);
    l.files[0].size = sizeof bytes;
    l.files[0].packed = l.files[0].segments = 1;
    l.files[0].segment = &segment;
    CHECK_INT(flush(&l, &options), 0);
    CHECK_STR(err.text, "");
    MPI_Barrier(MPI_COMM_WORLD);
    snprintf(path, sizeof path, "%s/%s", prefix, whole);
    FILE *stream = fopen(path, "rb");
    int bad = !stream;
    for (int r = 0; r < check_ranks && !bad; r++)
        for (size_t i = 0; i < sizeof bytes && !bad; i++)
            bad = fgetc(stream) != list_byte(r, 0, i);
    CHECK(!bad && fgetc(stream) == EOF);
    if (stream) fclose(stream);
    CHECK(list_exists(prefix, ".scr/ctr.0.scr"));
    list_unlink(&l);
}

/* ---- what it costs ---- */

/* Counts the files with bytes among the first count files of a rank. */
static long count_files(int rank, int count)
{
    long files = 0;
    for (int f = 0; f < count; f++)
        files += list_size(rank, f) > 0;
    return files;
}

/* Each rank opens its files once, and a leader once more opens the files with bytes of
 * its node. Each rank checks each file when it is open, and by its name when it was
 * copied; the leader checks it before the first byte and after the last. */
static void expect_sources(void)
{
    enum { OWN = 4, COPIED = 4 }; /* both with open and close */
    long copied = 0;
    for (int r = check_rank; check_rank < nodes_there() && r < check_ranks; r += nodes)
        copied += count_files(r, PER_RANK);
    CHECK_INT(sources, PER_RANK + copied);
    CHECK_INT(local, PER_RANK * OWN + copied * COPIED);
}

static void count_flush(const char *name, int on_nodes, const char *method, long sum[3])
{
    list l;
    char node[32];
    nodes = on_nodes;
    filo_options options = options_of(1, node);
    options.method = method;
    begin(&l, name);
    MPI_Barrier(MPI_COMM_WORLD);
    named = opened = synced = sources = local = 0;
    counting = 1;
    CHECK_INT(flush(&l, &options), 0);
    counting = 0;
    long mine[3] = {named, opened, synced};
    if (check_rank >= nodes_there() && check_rank > 0) CHECK_INT(mine[0], 0);
    expect_sources();
    MPI_Allreduce(mine, sum, 3, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    list_unlink(&l);
}

/* Ranks that do not copy make no calls. A container is opened for writing twice, when it
 * is created and when it is written, and synced once. The cost depends on the number of
 * nodes, not on the number of ranks. */
static void test_counts(void)
{
    enum { NAMED, OPENED, SYNCED, NUMBERS, MOST = 4, FIRST = 45, EACH = 10 };
    for (int on = 1; on <= MOST && on <= check_ranks; on *= 2)
        for (int threads = 0; threads < 2; threads++) {
            char name[32];
            long sum[NUMBERS];
            snprintf(name, sizeof name, "count%d-%d", on, threads);
            count_flush(name, on, threads ? "pthread" : "sync", sum);
            if (check_rank == 0)
                printf("%d ranks on %d nodes: %ld calls with names\n", check_ranks, on,
                       sum[NAMED]);
            CHECK_INT(sum[OPENED], 2 * on);
            CHECK_INT(sum[SYNCED], on);
            CHECK_INT(sum[NAMED], FIRST + EACH * (on - 1));
        }
}

/* The calls of a fetch alone. */
static void fetch_counted(list *l, int checksum)
{
    const filo_options options = {.checksum = checksum};
    int ranks, count;
    list_unlink(l);
    filo_file *files = flushed_read_map(&ranks, &count);
    list_adopt(l, count, files);
    folders = local = 0;
    counting = 1;
    CHECK_INT(fetch(count, files, &options), 0);
    counting = 0;
    list_expect(l, check_rank);
    filo_files_free(count, files);
}

/* A fetch opens the directory of its files when it creates them and when it renames them,
 * whatever their number. It looks up the file system of the directory before it syncs,
 * and, without checksums, before it copies. For each file it checks for an existing
 * entry, creates the file, stats, closes and renames it; a file with bytes is synced. */
static void test_fetch_counts(void)
{
    enum { EACH = 5 };
    list l;
    char node[32];
    nodes = 2;
    const filo_options options = options_of(1, node);
    for (int count = PER_RANK; count <= LIST_MAX; count += PER_RANK) {
        flushed_begin(&l, count > PER_RANK ? "many" : "few", count);
        CHECK_INT(flush(&l, &options), 0);
        for (int checksum = 0; checksum < 2; checksum++) {
            fetch_counted(&l, checksum);
            CHECK_INT(folders, 2);
            const long written = count_files(check_rank, count), asked = 1 + !checksum;
            CHECK_INT(local, EACH * count + written + asked);
        }
        list_unlink(&l);
    }
}

/* Ranks whose leader copies for them sleep meanwhile. */
static void test_asleep(void)
{
    list l;
    char node[32];
    nodes = 1;
    filo_options options = options_of(1, node);
    options.bandwidth = 2e6 * check_ranks; /* 0.3 s */
    begin(&l, "asleep");
    MPI_Barrier(MPI_COMM_WORLD);
    slept = 0;
    double start = MPI_Wtime();
    CHECK_INT(flush(&l, &options), 0);
    double seconds = MPI_Wtime() - start;
    if (check_rank > 0) CHECK(slept > 0.1);
    CHECK(seconds > 0.2);
    list_unlink(&l);
}

/* ---- failures ---- */

/* A file of one rank, which another rank copies, differs from its description, or the
 * disk is full: the earlier containers stay unchanged, and no temporary file is left. */
static void test_failures(void)
{
    list l;
    char node[32];
    nodes = 2;
    const filo_options options = options_of(1, node);
    begin(&l, "fails");
    CHECK_INT(flush(&l, &options), 0);
    uint64_t before = list_folder_sum(prefix);
    if (is_culprit()) l.files[2].crc ^= 1;
    CHECK_INT(flush(&l, &options), -EIO);
    list_expect_text(err.text, "was altered: CRC32 0x");
    char who[32];
    snprintf(who, sizeof who, "rank %d: ", check_ranks - 1);
    if (check_ranks > 1) list_expect_text(err.text, who);
    CHECK(list_folder_sum(prefix) == before);
    if (is_culprit()) l.files[2].crc ^= 1;
    if (is_culprit()) l.files[1].size++;
    CHECK_INT(flush(&l, &options), -EIO);
    CHECK(list_folder_sum(prefix) == before);
    if (is_culprit()) l.files[1].size--;
    full = 1; /* no effect yet: the open fails first */
    unreadable = is_culprit() ? l.local[2] : NULL;
    CHECK_INT(flush(&l, &options), -EACCES);
    unreadable = NULL;
    if (check_ranks > 1) list_expect_text(err.text, who);
    CHECK(list_folder_sum(prefix) == before);
    CHECK_INT(flush(&l, &options), -ENOSPC);
    full = 0;
    list_expect_text(err.text, "No space left");
    CHECK(list_folder_sum(prefix) == before && list_temporaries == 0);
    list_unlink(&l);
}

static void test_refused(void)
{
    list l;
    filo_options both = {.align = ALIGN, .container = 1000}, far = {.align = UINT64_MAX},
                 few = {.align = 1, .nodes = -1}, differ = {.align = 1};
    begin(&l, "refused");
    CHECK_INT(flush(&l, &both), -EINVAL);
    list_expect_text(err.text, "aligned to 4096 bytes and cut to a size");
    CHECK_INT(flush(&l, &far), -EINVAL);
    CHECK_INT(flush(&l, &few), -EINVAL);
    if (is_culprit()) differ.align = 2;
    if (check_ranks > 1) CHECK_INT(flush(&l, &differ), -EINVAL);
    CHECK(!list_exists(prefix, ""));
    list_unlink(&l);
}

/* Too much for one file: a hole of half the range on each of two ranks. */
static void test_too_long(void)
{
    list l;
    const filo_options options = {.align = (uint64_t)INT64_MAX / 2 + 1};
    begin(&l, "long");
    int rc = flush(&l, &options);
    CHECK(check_ranks > 2 ? rc == -EFBIG : rc == 0 || rc == -EFBIG || rc == -EINVAL);
    CHECK(check_ranks <= 2 || !list_exists(prefix, ".scr/stage"));
    list_unlink(&l);
}

/* ---- in the background, stopped, forgotten ---- */

static void test_in_the_background(void)
{
    list l;
    char node[32];
    filo_transfer *t;
    nodes = 2;
    filo_options options = options_of(2, node);
    options.method = "pthread";
    begin(&l, "background");
    CHECK_INT(filo_flush_start(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, &options,
                               &t, &err),
              0);
    int rc, count;
    while ((rc = filo_flush_test(t, &err)) == FILO_RUNNING) {
    }
    CHECK_INT(rc, 0);
    const filo_file *files = filo_flush_files(t, &count);
    CHECK_INT(count, l.count);
    for (int f = 0; f < count; f++) {
        CHECK(files[f].has_crc && files[f].size == list_size(check_rank, f));
        l.files[f] = files[f];
        l.files[f].local = l.local[f];
        l.files[f].name = l.name[f];
    }
    flushed_fetch_all(&l);
    list_unlink(&l);
    filo_flush_free(t);
    options.bandwidth = 1e5;
    begin(&l, "stopped");
    CHECK_INT(filo_flush_start(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, &options,
                               &t, &err),
              0);
    CHECK_INT(filo_flush_stop(t, &err), 0);
    CHECK_INT(filo_flush_test(t, &err), -ECANCELED);
    filo_flush_free(t);
    CHECK(!list_exists(prefix, ".scr/stage"));
    CHECK_INT(filo_flush_start(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, &options,
                               &t, &err),
              0);
    filo_flush_forget(t);
    MPI_Barrier(MPI_COMM_WORLD);
    list_unlink(&l);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    check_folder(folder);
    test_round_trips();
    test_nodes_of_mpi();
    test_no_bytes();
    test_forms();
    test_maps();
    test_shared_files();
    test_counts();
    test_fetch_counts();
    test_asleep();
    test_failures();
    test_refused();
    test_too_long();
    test_in_the_background();
    check_remove(folder);
    return check_end();
}
