/* SPDX-License-Identifier: BSD-3-Clause */
/* The map (rank2file) of many ranks with two files each, with size and checksum, written
 * and read by one process: its files, processor time per rank, and peak memory of the
 * process, compared with plain files of the same sizes that are written with fsync and
 * rename, or read. Each measurement runs in its own process, so that memory use is
 * measured separately. */
#include "bench.h"

#include <dirent.h>
#include <filo/filo.h>
#include <inttypes.h>
#include <kvtree/kvtree.h>
#include <kvtree/kvtree_util.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { FILES = 2, MAP_FILES_MAX = 4096, ROUNDS_OF_LARGEST = 3 };

typedef struct load {
    const bench *b;
    int ranks;
    char folder[96], plain[96];
    int files;                  /* number of files of the map */
    size_t size[MAP_FILES_MAX]; /* size of each, in bytes */
    size_t bytes, largest;      /* of all files, and of the largest */
    int level;                  /* of the root */
} load;

/* Results of a child process: seconds, and peak memory in bytes. */
static struct {
    double seconds, memory;
} * told;

/* ---- the map ---- */

typedef struct lists {
    filo_file files[FILES];
    char names[FILES][40];
    int taken;
    uint64_t sum;
} lists;

static int give(void *arg, int rank, int *count, const filo_file **files, filo_error *err)
{
    lists *r = arg;
    for (int f = 0; f < FILES; f++) {
        snprintf(r->names[f], sizeof r->names[f], f ? "rank_%d.meta" : "rank_%d.ckpt",
                 rank);
        r->files[f] = (filo_file){.name = r->names[f],
                                  .size = 524288u + (uint64_t)rank,
                                  .crc = 2654435761u * (uint32_t)rank,
                                  .has_crc = 1};
    }
    *count = FILES;
    *files = r->files;
    return 0;
}

static int take(void *arg, int rank, int count, const filo_file files[], filo_error *err)
{
    lists *r = arg;
    r->taken++;
    for (int f = 0; f < count; f++)
        r->sum += files[f].size - 524288u;
    return 0;
}

static void write_map(const load *l)
{
    static lists r;
    filo_error err = {""};
    const filo_place to = {.folder = l->folder};
    bench_require(l->b, filo_map_write(&to, l->ranks, give, &r, &err) == 0, err.text);
}

static void read_map(const load *l)
{
    static lists r;
    int count = 0;
    filo_error err = {""};
    const filo_place from = {.folder = l->folder};
    uint64_t n = (uint64_t)l->ranks;
    bench_require(l->b, filo_map_read(&from, &count, take, &r, &err) == 0, err.text);
    bench_require(l->b, count == l->ranks && r.taken == count && r.sum == n * (n - 1),
                  "the map has other files");
}

/* ---- plain files of the same sizes ---- */

static char piece[4 * MiB];

static void plain_name(const load *l, int i, char path[128])
{
    snprintf(path, 128, "%s/%d", l->plain, i);
}

static void write_plain(const load *l)
{
    char path[128], temporary[136];
    for (int i = 0; i < l->files; i++) {
        plain_name(l, i, path);
        snprintf(temporary, sizeof temporary, "%s.tmp", path);
        int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        int good = fd >= 0 && write(fd, piece, l->size[i]) == (ssize_t)l->size[i] &&
                   fsync(fd) == 0 && close(fd) == 0 && rename(temporary, path) == 0;
        bench_require(l->b, good, path);
    }
}

static void read_plain(const load *l)
{
    char path[128];
    for (int i = 0; i < l->files; i++) {
        plain_name(l, i, path);
        int fd = open(path, O_RDONLY);
        int good = fd >= 0 && read(fd, piece, l->size[i]) == (ssize_t)l->size[i] &&
                   close(fd) == 0;
        bench_require(l->b, good, path);
    }
}

/* ---- measuring ---- */

/* VmHWM, the peak memory of this process, in bytes; 0 if it is unknown. */
static double largest_memory(void)
{
    char line[128];
    double kilobytes = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %lf", &kilobytes) == 1) break;
    if (status) fclose(status);
    return 1024 * kilobytes;
}

/* Resets the peak memory. */
static void forget_largest_memory(void)
{
    int fd = open("/proc/self/clear_refs", O_WRONLY);
    if (fd < 0) return;
    if (write(fd, "5", 1) != 1) perror("/proc/self/clear_refs");
    close(fd);
}

static void in_child(const load *l, void (*work)(const load *))
{
    if (work == write_plain || work == read_plain) bench_fill(piece, sizeof piece);
    forget_largest_memory();
    double start = bench_cpu();
    work(l);
    told->seconds = bench_cpu() - start;
    told->memory = largest_memory();
}

static double in_process(const load *l, void (*work)(const load *))
{
    int status = 0;
    told->seconds = -1;
    pid_t child = fork();
    if (child == 0) {
        in_child(l, work);
        _exit(0);
    }
    waitpid(child, &status, 0);
    bench_require(l->b, child > 0 && status == 0 && told->seconds >= 0, "a child failed");
    return told->seconds;
}

static double run_write(void *l)
{
    return in_process(l, write_map);
}

static double run_read(void *l)
{
    return in_process(l, read_map);
}

static double run_write_plain(void *l)
{
    return in_process(l, write_plain);
}

static double run_read_plain(void *l)
{
    return in_process(l, read_plain);
}

/* ---- what was written ---- */

static void look_at_root(load *l)
{
    char path[128];
    kvtree *root = kvtree_new();
    snprintf(path, sizeof path, "%s/" FILO_MAP, l->folder);
    bench_require(l->b,
                  kvtree_read_file(path, root) == 0 &&
                      kvtree_util_get_int(root, "LEVEL", &l->level) == 0,
                  path);
    kvtree_delete(&root);
}

static void look_at_files(load *l)
{
    char path[128];
    struct stat st;
    snprintf(path, sizeof path, "%s/.scr", l->folder);
    DIR *dir = opendir(path);
    bench_require(l->b, dir != NULL, path);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (e->d_name[0] == '.') continue;
        int good = fstatat(dirfd(dir), e->d_name, &st, 0) == 0 &&
                   l->files < MAP_FILES_MAX && st.st_size <= (off_t)sizeof piece;
        bench_require(l->b, good, "a strange file");
        size_t size = (size_t)st.st_size;
        l->size[l->files++] = size;
        l->bytes += size;
        if (size > l->largest) l->largest = size;
    }
    closedir(dir);
    look_at_root(l);
}

/* ---- the tables ---- */

enum { WRITE, READ, WRITE_PLAIN, READ_PLAIN, CASES };

typedef struct figures {
    double seconds[CASES], memory[2];
} figures;

static void measure(load *l, bench *b, int ranks, figures *f)
{
    const bench_case cases[CASES] = {
        {run_write, l}, {run_read, l}, {run_write_plain, l}, {run_read_plain, l}};
    *l = (load){.b = b, .ranks = ranks};
    snprintf(l->folder, sizeof l->folder, "%s/%d", b->folder, ranks);
    snprintf(l->plain, sizeof l->plain, "%s/%d plain", b->folder, ranks);
    bench_require(b, mkdir(l->plain, 0700) == 0, l->plain);
    run_write(l);
    f->memory[WRITE] = told->memory;
    run_read(l);
    f->memory[READ] = told->memory;
    look_at_files(l);
    bench_measure(b, CASES, cases, f->seconds);
    bench_remove(l->folder);
    bench_remove(l->plain);
}

static void report_files(bench *b, const load *l)
{
    bench_number(b, l->ranks);
    bench_number(b, l->files);
    bench_number(b, l->level + 1);
    bench_number(b, 1e-6 * (double)l->bytes);
    bench_number(b, (double)l->bytes / l->ranks);
    bench_number(b, 1e-3 * (double)l->largest);
}

static void report_times(bench *b, int count, figures all[], const int ranks[])
{
    for (int i = 0; i < count; i++)
        for (int what = WRITE; what <= READ; what++) {
            double ours = all[i].seconds[what],
                   plain = all[i].seconds[WRITE_PLAIN + what];
            bench_number(b, ranks[i]);
            bench_text(b, what == WRITE ? "write" : "read");
            bench_number(b, 1e3 * ours);
            bench_number(b, 1e9 * ours / ranks[i]);
            bench_number(b, 1e9 * plain / ranks[i]);
            bench_number(b, ours / plain);
            bench_number(b, 1e-6 * all[i].memory[what]);
        }
}

/* Compares with the goals: a hundred times as many ranks take about a hundred times as
 * long, and hardly more memory. */
static void report_goals(bench *b, const figures *few, const figures *many)
{
    static const struct {
        const char *what;
        double most;
    } goals[] = {{"write: time", 130},
                 {"read: time", 130},
                 {"write: memory", 1.2},
                 {"read: memory", 1.2}};
    for (int i = 0; i < 4; i++) {
        char text[32];
        int what = i % 2;
        double growth = i < 2 ? many->seconds[what] / few->seconds[what]
                              : many->memory[what] / few->memory[what];
        snprintf(text, sizeof text, "at most %g", goals[i].most);
        bench_text(b, goals[i].what);
        bench_number(b, growth);
        bench_text(b, text);
        bench_text(b, growth <= goals[i].most ? "reached" : "missed");
    }
}

int main(int argc, char **argv)
{
    static const char *const columns[] = {
        "ranks", "files", "levels", "bytes [MB]", "bytes / rank", "largest file [kB]",
        NULL};
    static const char *const time_columns[] = {
        "ranks",           "map",         "time [ms]",   "ns / rank",
        "plain [ns/rank]", "map / plain", "memory [MB]", NULL};
    static const char *const goal_columns[] = {"1000000 / 10000 ranks", "growth",
                                               "to reach", "result", NULL};
    static const int ranks[] = {1000, 10000, 100000, 1000000};
    enum { SIZES = sizeof ranks / sizeof *ranks };
    static load l;
    static bench b;
    figures all[SIZES];
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                -1, 0);
    bench_begin(&b, argc, argv, columns);
    bench_require(&b, told != MAP_FAILED, "no memory");
    int rounds = b.rounds;
    for (int i = 0; i < SIZES; i++) {
        b.rounds =
            i == SIZES - 1 && rounds > ROUNDS_OF_LARGEST ? ROUNDS_OF_LARGEST : rounds;
        measure(&l, &b, ranks[i], &all[i]);
        report_files(&b, &l);
    }
    b.rounds = rounds;
    bench_table(&b, time_columns);
    report_times(&b, SIZES, all, ranks);
    bench_table(&b, goal_columns);
    report_goals(&b, &all[1], &all[3]);
    return bench_end(&b);
}
