/* SPDX-License-Identifier: BSD-3-Clause */
/* Files packed into containers: the places of all bytes, that all files are restored, and
 * the errors that report a changed container. */
#include "flushed.h"

#include "src/filo_layout.h"

enum { PER_RANK = 4 };

static void begin(list *l, const char *name)
{
    flushed_begin(l, name, PER_RANK);
}

static uint64_t bytes_of(int rank)
{
    uint64_t sum = 0;
    for (int f = 0; f < PER_RANK; f++)
        sum += list_size(rank, f);
    return sum;
}

static uint64_t bytes_of_all(void)
{
    uint64_t sum = 0;
    for (int rank = 0; rank < check_ranks; rank++)
        sum += bytes_of(rank);
    return sum;
}

static int count_containers(void)
{
    char name[64];
    int i = 0;
    do
        snprintf(name, sizeof name, ".scr/ctr.%d.scr", i);
    while (list_exists(prefix, name) && ++i < 100000);
    return i;
}

/* ---- flush ---- */

/* All ranks in the order in which their bytes must lie, given the node of each. */
static void order_ranks(const int node[], int order[])
{
    int n = 0;
    for (int first = 0; first < check_ranks; first++) {
        int seen = 0;
        for (int r = 0; r < first; r++)
            seen |= node[r] == node[first];
        for (int r = first; r < check_ranks && !seen; r++)
            if (node[r] == node[first]) order[n++] = r;
    }
    CHECK_INT(n, check_ranks);
}

/* Checks that the containers, one after the other, are the files of the ranks in this
 * order. */
static void expect_bytes(const int order[], uint64_t limit)
{
    FILE *stream = NULL;
    uint64_t left = 0, total = bytes_of_all(), at = 0;
    int bad = 0, container = 0;
    for (int n = 0; n < check_ranks && !bad; n++)
        for (int f = 0; f < PER_RANK; f++)
            for (size_t i = 0; i < list_size(order[n], f) && !bad; i++) {
                if (left == 0) {
                    char path[256];
                    if (stream) {
                        bad |= fgetc(stream) != EOF;
                        fclose(stream);
                    }
                    snprintf(path, sizeof path, "%s/.scr/ctr.%d.scr", prefix,
                             container++);
                    stream = fopen(path, "rb");
                    left = total - at < limit ? total - at : limit;
                }
                bad |= !stream || fgetc(stream) != list_byte(order[n], f, i);
                left--;
                at++;
            }
    CHECK(!bad);
    CHECK_INT(at, total);
    if (stream) fclose(stream);
}

/* Flushes into containers and fetches back. nodes: distribution of ranks over nodes. */
static void round_trip(const char *name, uint64_t limit, int (*node_of)(int), int width)
{
    list l;
    char text[32];
    int node[64], order[64];
    filo_options options = {
        .checksum = 1, .container = limit, .width = width, .node = text};
    begin(&l, name);
    CHECK(chmod(l.local[2], 0640) == 0);
    for (int r = 0; r < check_ranks; r++)
        node[r] = node_of(r);
    snprintf(text, sizeof text, "node %d", node_of(check_rank));
    CHECK_INT(flush(&l, &options), 0);
    CHECK_STR(err.text, "");
    order_ranks(node, order);
    if (check_rank == 0) expect_bytes(order, limit);
    CHECK_INT(count_containers(), (bytes_of_all() + limit - 1) / limit);
    CHECK(!list_exists(prefix, l.name[0]) && !list_exists(prefix, l.name[2]));
    flushed_fetch_all(&l);
    struct stat st;
    CHECK(stat(l.local[2], &st) == 0 && (st.st_mode & 0777) == 0640);
    list_unlink(&l);
}

static int on_one(int rank)
{
    return 0 * rank;
}

static int on_many(int rank)
{
    return rank;
}

static int alternating(int rank)
{
    return rank % 2;
}

static int in_pairs(int rank)
{
    return 7 - rank / 2;
}

static void test_round_trips(void)
{
    round_trip("one", (uint64_t)100 << 30, on_one, 0);
    round_trip("borders", 300000, on_many, 0);
    round_trip("alternating", 123457, alternating, 1);
    round_trip("pairs", 299999, in_pairs, 2);
    round_trip("many", 4096, in_pairs, 3);
}

/* Without names of nodes, the nodes are ranks that share memory: here all ranks. */
static void test_nodes_of_mpi(void)
{
    list l;
    int order[64];
    filo_options options = {.container = 200000};
    begin(&l, "shared");
    CHECK_INT(flush(&l, &options), 0);
    for (int r = 0; r < check_ranks; r++)
        order[r] = r;
    if (check_rank == 0) expect_bytes(order, 200000);
    list_unlink(&l);
}

/* A container grants only permissions that all of its files grant. */
static void test_modes(void)
{
    list l;
    char name[192];
    struct stat st;
    filo_options options = {.container = 200000};
    begin(&l, "modes");
    mode_t mode = is_culprit() ? 0660 : 0644, umasked = umask(0);
    for (int i = 0; i < l.count; i++)
        CHECK(chmod(l.local[i], mode) == 0);
    CHECK_INT(flush(&l, &options), 0);
    umask(umasked);
    snprintf(name, sizeof name, "%s/.scr/ctr.0.scr", prefix);
    mode_t wanted = check_ranks > 1 ? 0640 : 0660;
    CHECK(stat(name, &st) == 0 && (st.st_mode & 0777) == wanted);
    list_unlink(&l);
}

/* Fetched files get no permissions that their container does not grant, whatever the map
 * says. */
static void test_fetched_modes(void)
{
    list l;
    int ranks, count;
    filo_file *files;
    struct stat st;
    char name[192];
    filo_options options = {.container = (uint64_t)100 << 30};
    begin(&l, "fetched");
    CHECK_INT(flush(&l, &options), 0);
    list_unlink(&l);
    snprintf(name, sizeof name, "%s/.scr/ctr.0.scr", prefix);
    if (check_rank == 0) CHECK(chmod(name, 0600) == 0);
    files = flushed_read_map(&ranks, &count);
    list_adopt(&l, count, files);
    CHECK_INT(fetch(count, files, &options), 0);
    CHECK(stat(l.local[2], &st) == 0 && (st.st_mode & 0777) == 0600);
    filo_files_free(count, files);
    list_unlink(&l);
}

/* No rank has any bytes: there is no container, and the empty files are restored. */
static void test_no_bytes(void)
{
    list l;
    int ranks, count;
    filo_file *files;
    filo_options options = {.container = 1000};
    begin(&l, "nothing");
    l.count = 1;
    CHECK(truncate(l.local[0], 0) == 0);
    l.files[0].size = 0;
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, 1, l.files, &options, &err), 0);
    CHECK_INT(count_containers(), 0);
    list_unlink(&l);
    files = flushed_read_map(&ranks, &count);
    CHECK_INT(count, 1);
    files[0].local = strdup(l.local[0]);
    CHECK_INT(fetch(count, files, NULL), 0);
    struct stat st;
    CHECK(stat(l.local[0], &st) == 0 && st.st_size == 0);
    filo_files_free(count, files);
    for (int f = 0; f < PER_RANK; f++)
        unlink(l.local[f]);
}

/* ---- one after the other in one directory ---- */

/* A smaller flush leaves no container of the larger flush before, and a flush without
 * containers leaves none at all. */
static void test_surplus(void)
{
    list l;
    filo_options options = {.container = 10000};
    begin(&l, "surplus");
    CHECK_INT(flush(&l, &options), 0);
    options.container = 250000;
    CHECK_INT(flush(&l, &options), 0);
    CHECK_INT(count_containers(), (bytes_of_all() + 249999) / 250000);
    CHECK_INT(flush(&l, NULL), 0);
    CHECK_INT(count_containers(), 0);
    list_unlink(&l);
}

/* A file of one rank differs from its description: the earlier containers stay unchanged.
 */
static void test_failure_keeps_earlier(void)
{
    list l;
    filo_options options = {.checksum = 1, .container = 70000};
    begin(&l, "keep");
    CHECK_INT(flush(&l, &options), 0);
    uint64_t before = list_folder_sum(prefix);
    if (is_culprit()) l.files[2].crc ^= 1;
    CHECK_INT(flush(&l, &options), -EIO);
    list_expect_text(err.text, "was altered: CRC32 0x");
    CHECK(list_folder_sum(prefix) == before);
    list_unlink(&l);
}

static void test_refused(void)
{
    list l;
    filo_options options = {.container = (uint64_t)INT64_MAX + 1};
    begin(&l, "refused");
    CHECK_INT(flush(&l, &options), -EINVAL);
    list_expect_text(err.text, "containers of ");
    if (is_culprit()) strcpy(l.name[0], ".scr/ctr.0.scr");
    CHECK_INT(flush(&l, NULL), -EINVAL);
    list_expect_text(err.text, "belongs to the map");
    CHECK(!list_exists(prefix, ""));
    list_unlink(&l);
}

/* ---- damage ---- */

static void cut(const char *path)
{
    struct stat st;
    CHECK(stat(path, &st) == 0 && truncate(path, st.st_size - 1) == 0);
}

static void alter(const char *path)
{
    struct stat st;
    char byte = 0;
    int fd = open(path, O_RDWR);
    CHECK(fstat(fd, &st) == 0 && pread(fd, &byte, 1, st.st_size / 2) == 1);
    byte = (char)~byte;
    CHECK(pwrite(fd, &byte, 1, st.st_size / 2) == 1);
    CHECK(close(fd) == 0);
}

static void take_away(const char *path)
{
    CHECK(unlink(path) == 0);
}

static void put_link(const char *path)
{
    char away[600];
    snprintf(away, sizeof away, "%s.away", path);
    CHECK(rename(path, away) == 0 && symlink(away, path) == 0);
}

static void put_folder(const char *path)
{
    CHECK(unlink(path) == 0 && mkdir(path, 0700) == 0);
}

static void fetch_harmed(void (*harm)(const char *path), int last, const char *text)
{
    list l;
    char path[256], remove[256];
    int ranks, count;
    filo_file *files;
    filo_options options = {.checksum = 1, .container = 100000};
    begin(&l, "harm");
    CHECK_INT(flush(&l, &options), 0);
    snprintf(path, sizeof path, "%s/.scr/ctr.%d.scr", prefix,
             last ? count_containers() - 1 : 0);
    list_unlink(&l);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0) harm(path);
    files = flushed_read_map(&ranks, &count);
    list_adopt(&l, count, files);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_INT(fetch(count, files, &options), FILO_DAMAGED);
    list_expect_text(err.text, text);
    list_expect_none(&l);
    filo_files_free(count, files);
    MPI_Barrier(MPI_COMM_WORLD);
    snprintf(remove, sizeof remove, "rm -rf %s", prefix);
    if (check_rank == 0) CHECK(system(remove) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Changes every byte of this container and of all later ones. */
static void alter_all(const char *path)
{
    static unsigned char bytes[100000];
    char name[200];
    ssize_t size;
    const char *number = strstr(path, "ctr.") + strlen("ctr.");
    for (int i = atoi(number), fd = 0; fd >= 0; i++) {
        snprintf(name, sizeof name, "%.*s%d.scr", (int)(number - path), path, i);
        fd = open(name, O_RDWR);
        if (fd < 0) break;
        CHECK((size = pread(fd, bytes, sizeof bytes, 0)) >= 0);
        for (ssize_t at = 0; at < size; at++)
            bytes[at] ^= 1;
        CHECK(pwrite(fd, bytes, (size_t)size, 0) == size);
        close(fd);
    }
}

static void test_damage(void)
{
    fetch_harmed(cut, 0, "/.scr/ctr.0.scr has 99999 bytes, but ");
    fetch_harmed(cut, 1, " bytes, but ");
    fetch_harmed(alter, 0, "was altered: CRC32 0x");
    fetch_harmed(alter, 1, "was altered: CRC32 0x");
    fetch_harmed(alter, 0, "/.scr/ctr.0.scr, ");
    fetch_harmed(alter_all, 0, " files of this rank are damaged, the first: ");
    fetch_harmed(alter_all, 0, "/.scr/ctr.");
    fetch_harmed(take_away, 0, "ctr.0.scr is missing");
    fetch_harmed(put_link, 1, "not a regular file");
    fetch_harmed(put_folder, 0, "not a regular file");
}

/* Segments made up by a caller, or taken from an unchecked map. */
static void test_refused_segments(void)
{
    list l;
    char good[] = ".scr/ctr.0.scr", bad[] = "../x";
    filo_segment segment = {.container = good, .length = 100};
    filo_options options = {.container = 100000};
    begin(&l, "segments");
    CHECK_INT(flush(&l, &options), 0);
    filo_file file = {.local = l.local[0],
                      .name = l.name[0],
                      .size = 100,
                      .packed = 1,
                      .segments = 1,
                      .segment = &segment};
    segment.offset = is_culprit() ? UINT64_MAX - 50 : 0;
    CHECK_INT(fetch(1, &file, NULL), FILO_DAMAGED);
    segment.offset = 0;
    segment.length = is_culprit() ? 99 : 100;
    CHECK_INT(fetch(1, &file, NULL), FILO_DAMAGED);
    list_expect_text(err.text, "has 99 bytes");
    segment.length = 100;
    segment.container = is_culprit() ? bad : good;
    CHECK_INT(fetch(1, &file, NULL), -EINVAL);
    list_expect(&l, check_rank); /* nothing was changed */
    list_unlink(&l);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    check_folder(folder);
    test_round_trips();
    test_nodes_of_mpi();
    test_modes();
    test_fetched_modes();
    test_no_bytes();
    test_surplus();
    test_failure_keeps_earlier();
    test_refused();
    test_damage();
    test_refused_segments();
    check_remove(folder);
    return check_end();
}
