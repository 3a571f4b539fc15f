/* SPDX-License-Identifier: BSD-3-Clause */
/* One process writes the same map as filo_flush, byte for byte, and each side reads the
 * map of the other. */
#include "lists.h"

#include <dirent.h>

static char folder[64], flushed[128], written[128];
static filo_error err;

/* The number of files of a rank: none, or some. */
static int count_of(int rank, int most)
{
    return most ? rank * 7 % (most + 1) : 0;
}

/* The files of all ranks, as known to one process: sizes, and checksums if they were
 * computed. */
typedef struct all {
    int most, taken;
    uint32_t (*crc)[LIST_MAX];
    list list;
} all;

/* Takes the time from the file that the flush made. */
static void note_time(filo_file *file)
{
    char path[2048];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", flushed, file->name);
    CHECK_INT(lstat(path, &st), 0);
    filo_file_note_time(file, &st);
    CHECK_INT(filo_file_was_written(file, &st), 0);
}

static list *list_of(all *a, int rank)
{
    list_init(&a->list, folder, rank, count_of(rank, a->most));
    for (int f = 0; f < a->list.count; f++) {
        a->list.files[f].has_crc = a->crc != NULL;
        a->list.files[f].crc = a->crc ? a->crc[rank][f] : 0;
        note_time(&a->list.files[f]);
    }
    return &a->list;
}

static int give(void *arg, int rank, int *count, const filo_file **files,
                filo_error *cause)
{
    const list *l = list_of(arg, rank);
    *count = l->count;
    *files = l->files;
    return 0;
}

static int take(void *arg, int rank, int count, const filo_file files[],
                filo_error *cause)
{
    all *a = arg;
    const list *l = list_of(a, rank);
    CHECK_INT(count, l->count);
    for (int f = 0; f < count && f < l->count; f++) {
        CHECK_STR(files[f].name, l->name[f]);
        CHECK_INT(files[f].size, l->files[f].size);
        CHECK_INT(files[f].has_crc, l->files[f].has_crc);
        CHECK_INT(files[f].crc, l->files[f].crc);
        CHECK(files[f].has_mtime && files[f].mtime == l->files[f].mtime);
    }
    a->taken++;
    return 0;
}

/* ---- files of the map ---- */

static ssize_t read_bytes(const char *prefix, const char *name, char bytes[1 << 17])
{
    char path[512];
    snprintf(path, sizeof path, "%s/.scr/%s", prefix, name);
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, bytes, 1 << 17);
    close(fd);
    return n;
}

/* Checks that each file of the map in directory a is in b, with the same bytes. Returns
 * their number. */
static int count_same(const char *a, const char *b)
{
    static char x[1 << 17], y[1 << 17];
    char path[256];
    int count = 0;
    snprintf(path, sizeof path, "%s/.scr", a);
    DIR *dir = opendir(path);
    CHECK(dir != NULL);
    for (const struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
        if (e->d_name[0] == '.') continue;
        ssize_t n = read_bytes(a, e->d_name, x), m = read_bytes(b, e->d_name, y);
        CHECK(n > 0 && n == m && memcmp(x, y, (size_t)n) == 0);
        count++;
    }
    if (dir) closedir(dir);
    return count;
}

/* ---- both ways ---- */

/* Rank 0 writes and reads for all ranks. */
static void one_process(all *a, size_t limit)
{
    int ranks = 0;
    const filo_place to = {.folder = written, .limit = limit}, from = {.folder = flushed};
    CHECK_INT(filo_map_write(&to, check_ranks, give, a, &err), 0);
    int files = count_same(flushed, written);
    CHECK(files >= 2);
    CHECK_INT(count_same(written, flushed), files);
    CHECK_INT(filo_map_read(&from, &ranks, take, a, &err), 0);
    CHECK_INT(ranks, check_ranks);
    CHECK_INT(a->taken, check_ranks);
}

static void read_by_all(const list *l)
{
    int ranks = 0, count = 0;
    filo_file *files = NULL;
    CHECK_INT(
        filo_read_map(MPI_COMM_WORLD, written, NULL, &ranks, &count, &files, NULL, &err),
        0);
    CHECK_INT(ranks, check_ranks);
    list_adopt(l, count, files);
    filo_files_free(count, files);
}

static void both_ways(const char *name, int most, int checksum, size_t limit)
{
    static uint32_t crc[64][LIST_MAX], own[LIST_MAX];
    all a = {.most = most, .crc = checksum ? crc : NULL};
    const filo_options options = {.checksum = checksum, .map_limit = limit};
    list l;
    snprintf(flushed, sizeof flushed, "%s/%s, flushed", folder, name);
    snprintf(written, sizeof written, "%s/%s, written", folder, name);
    err.text[0] = 0;
    list_create(&l, folder, check_rank, count_of(check_rank, most));
    CHECK_INT(filo_flush(MPI_COMM_WORLD, flushed, NULL, l.count, l.files, &options, &err),
              0);
    for (int f = 0; f < l.count; f++)
        own[f] = l.files[f].crc;
    MPI_Gather(own, LIST_MAX, MPI_UINT32_T, crc, LIST_MAX, MPI_UINT32_T, 0,
               MPI_COMM_WORLD);
    if (check_rank == 0) one_process(&a, limit);
    MPI_Barrier(MPI_COMM_WORLD);
    read_by_all(&l);
    CHECK_STR(err.text, "");
    list_unlink(&l);
}

/* ---- packed files ---- */

/* The files that pass from one map to the other, of one rank at a time. */
typedef struct again {
    int rank, count;
    filo_file *files;
    int packed; /* of all ranks */
} again;

/* Keeps the files of one rank. */
static int keep(void *arg, int rank, int count, const filo_file files[],
                filo_error *cause)
{
    again *a = arg;
    if (rank != a->rank) return 0;
    a->count = count;
    a->files = calloc((size_t)count + 1, sizeof *a->files);
    for (int f = 0; f < count; f++) {
        filo_file *copy = &a->files[f];
        *copy = files[f];
        copy->name = strdup(copy->name);
        copy->segment = calloc((size_t)copy->segments + 1, sizeof *copy->segment);
        for (int s = 0; s < copy->segments; s++) {
            copy->segment[s] = files[f].segment[s];
            copy->segment[s].container = strdup(copy->segment[s].container);
        }
        a->packed += copy->packed;
    }
    return 0;
}

static int give_again(void *arg, int rank, int *count, const filo_file **files,
                      filo_error *cause)
{
    again *a = arg;
    const filo_place from = {.folder = flushed};
    a->files = filo_files_free(a->count, a->files);
    a->rank = rank;
    CHECK_INT(filo_map_read(&from, NULL, keep, a, cause), 0);
    *count = a->count;
    *files = a->files;
    return 0;
}

/* The map of a flush into containers is the same after reading and writing it again. */
static void packed(const char *name, uint64_t container)
{
    list l;
    again a = {.count = 0};
    const filo_options options = {.checksum = 1, .container = container};
    const filo_place to = {.folder = written};
    snprintf(flushed, sizeof flushed, "%s/%s, flushed", folder, name);
    snprintf(written, sizeof written, "%s/%s, written", folder, name);
    list_create(&l, folder, check_rank, 3);
    CHECK_INT(filo_flush(MPI_COMM_WORLD, flushed, NULL, l.count, l.files, &options, &err),
              0);
    if (check_rank == 0) {
        CHECK_INT(filo_map_write(&to, check_ranks, give_again, &a, &err), 0);
        CHECK_INT(a.packed, 3 * check_ranks);
        CHECK(count_same(written, flushed) >= 2);
        filo_files_free(a.count, a.files);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    read_by_all(&l);
    list_unlink(&l);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    check_folder(folder);
    both_ways("defaults", 3, 0, 0);
    both_ways("checksums", 3, 1, 0);
    both_ways("no files", 0, 1, 0);
    both_ways("a file each", 4, 1, 1);
    both_ways("small files", 4, 1, 700);
    packed("containers", 250000);
    packed("one container", 1 << 30);
    check_remove(folder);
    return check_end();
}
