/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_BENCH_H
#define TESTS_BENCH_H

/* What the benchmark programs share: a clock, medians over several rounds, a folder in
 * memory, and one table per program, printed as Markdown and, with --json FILE, as JSON.
 *
 *     static const char *const columns[] = {"ranks", "pack [ms]", NULL};
 *     bench b;
 *     bench_begin(&b, argc, argv, columns);
 *     bench_measure(&b, 2, cases, medians);     the cases take turns, round after round
 *     bench_number(&b, 1000);
 *     bench_number(&b, 1e3 * medians[0]);       the row is full
 *     return bench_end(&b);
 *
 * All files live in b.folder, below /dev/shm, which is removed at the end. What cannot be
 * measured ends the program. bench_mpi.h is the same for MPI programs. */

#include <fcntl.h>
#include <ftw.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BENCH_CELLS = 512, BENCH_COLUMNS = 16, BENCH_CASES = 8, BENCH_ROUNDS = 100 };
enum { KiB = 1024, MiB = 1024 * 1024 };

typedef struct bench_cell {
    char text[24];
    double value;
    int is_number;
} bench_cell;

typedef struct bench {
    const char *const *columns; /* headings, up to a NULL */
    int column_count, cell_count;
    bench_cell cells[BENCH_CELLS];
    int rounds, quiet; /* quiet: another rank prints */
    const char *json;
    char folder[64];
} bench;

/* One thing to measure: run does it once and returns the seconds that count. */
typedef struct bench_case {
    double (*run)(void *arg);
    void *arg;
} bench_case;

static inline double bench_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- files ---- */

static inline int bench_remove_one(const char *path, const struct stat *st, int type,
                                   struct FTW *walk)
{
    (void)st, (void)type, (void)walk;
    return remove(path);
}

/* Removes path with all below it. */
static inline void bench_remove(const char *path)
{
    nftw(path, bench_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Without ok there is nothing to measure: cleans up, says what is wrong, ends. */
static inline void bench_require(const bench *b, int ok, const char *what)
{
    if (ok) return;
    fprintf(stderr, "benchmark: %s\n", what);
    if (b->folder[0]) bench_remove(b->folder);
    exit(1);
}

/* Bytes that do not compress, the same in every run. */
static inline void bench_fill(void *data, size_t size)
{
    unsigned char *bytes = data;
    unsigned state = 1;
    for (size_t i = 0; i < size; i++) {
        state = state * 1103515245u + 12345u;
        bytes[i] = (unsigned char)(state >> 16);
    }
}

/* A new file of size bytes; with its checksum in mind, blocks of it may repeat. */
static inline void bench_make_file(const bench *b, const char *path, size_t size)
{
    static unsigned char block[64 * KiB];
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600), ok = fd >= 0;
    if (!block[1]) bench_fill(block, sizeof block);
    for (size_t done = 0; ok && done < size;) {
        size_t n = size - done < sizeof block ? size - done : sizeof block;
        ok = write(fd, block, n) == (ssize_t)n;
        done += n;
    }
    bench_require(b, ok && close(fd) == 0, path);
}

/* ---- begin, measure ---- */

static inline void bench_options(bench *b, int argc, char **argv)
{
    static const struct option options[] = {{"json", required_argument, NULL, 'j'},
                                            {"rounds", required_argument, NULL, 'r'},
                                            {NULL, 0, NULL, 0}};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'j') b->json = optarg;
        if (option == 'r') b->rounds = atoi(optarg);
        bench_require(b, option != '?', "options are --json FILE and --rounds N");
    }
    bench_require(b, b->rounds >= 1 && b->rounds <= BENCH_ROUNDS, "1 to 100 rounds");
}

static inline void bench_make_folder(bench *b)
{
    strcpy(b->folder, "/dev/shm/scr-bench-XXXXXX");
    if (!mkdtemp(b->folder)) b->folder[0] = 0;
}

static inline void bench_begin(bench *b, int argc, char **argv,
                               const char *const columns[])
{
    memset(b, 0, sizeof *b);
    b->columns = columns;
    b->rounds = 5;
    while (columns[b->column_count])
        b->column_count++;
    bench_options(b, argc, argv);
    bench_make_folder(b);
    bench_require(b, b->folder[0], "no folder can be made in /dev/shm");
}

static inline int bench_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double bench_median(int count, double values[])
{
    qsort(values, (size_t)count, sizeof *values, bench_compare);
    return (values[count / 2] + values[(count - 1) / 2]) / 2;
}

/* The median seconds of each case. They take turns, so that what else the machine does
 * meets all of them; the first round warms up and does not count. */
static inline void bench_measure(const bench *b, int count, const bench_case cases[],
                                 double medians[])
{
    double seconds[BENCH_CASES][BENCH_ROUNDS + 1];
    bench_require(b, count <= BENCH_CASES, "too many cases");
    for (int round = 0; round <= b->rounds; round++)
        for (int i = 0; i < count; i++)
            seconds[i][round] = cases[i].run(cases[i].arg);
    for (int i = 0; i < count; i++)
        medians[i] = bench_median(b->rounds, &seconds[i][1]);
}

/* ---- the table ---- */

static inline bench_cell *bench_cell_add(bench *b)
{
    bench_require(b, b->cell_count < BENCH_CELLS, "the table is too long");
    return &b->cells[b->cell_count++];
}

static inline void bench_text(bench *b, const char *text)
{
    snprintf(bench_cell_add(b)->text, sizeof b->cells->text, "%s", text);
}

/* Counts in full, everything else with three digits. */
static inline void bench_number(bench *b, double value)
{
    bench_cell *cell = bench_cell_add(b);
    int before = value == 0 ? 1 : (int)floor(log10(fabs(value))) + 1;
    int behind = floor(value) == value || before >= 3 ? 0 : 3 - before;
    snprintf(cell->text, sizeof cell->text, "%.*f", behind, value);
    cell->value = value;
    cell->is_number = 1;
}

static inline int bench_width(const bench *b, int column)
{
    size_t width = strlen(b->columns[column]);
    for (int i = column; i < b->cell_count; i += b->column_count)
        if (strlen(b->cells[i].text) > width) width = strlen(b->cells[i].text);
    return (int)width;
}

static inline void bench_print(const bench *b)
{
    int width[BENCH_COLUMNS];
    for (int i = 0; i < b->column_count; i++)
        width[i] = bench_width(b, i);
    for (int i = 0; i < b->column_count; i++)
        printf("| %*s ", width[i], b->columns[i]);
    printf("|\n");
    for (int i = 0; i < b->column_count; i++)
        printf("| %.*s: ", width[i] - 1, "-----------------------------------------");
    for (int i = 0; i < b->cell_count; i++)
        printf("%s %*s ", i % b->column_count ? "|" : "|\n|", width[i % b->column_count],
               b->cells[i].text);
    printf("|\n");
}

static inline void bench_print_json(const bench *b)
{
    FILE *file = fopen(b->json, "w");
    bench_require(b, file != NULL, b->json);
    fprintf(file, "{\"rounds\": %d, \"rows\": [", b->rounds);
    for (int i = 0; i < b->cell_count; i++) {
        int column = i % b->column_count;
        const char *before = column ? ", " : i ? "},\n{" : "\n{";
        fprintf(file, "%s\"%s\": ", before, b->columns[column]);
        if (b->cells[i].is_number)
            fprintf(file, "%.9g", b->cells[i].value);
        else
            fprintf(file, "\"%s\"", b->cells[i].text);
    }
    fprintf(file, "}\n]}\n");
    bench_require(b, fclose(file) == 0, b->json);
}

/* Prints the table and cleans up; the exit code of the program. */
static inline int bench_end(bench *b)
{
    if (b->quiet) return 0;
    bench_require(b, b->cell_count && b->cell_count % b->column_count == 0,
                  "the table is not full");
    bench_remove(b->folder);
    bench_print(b);
    if (b->json) bench_print_json(b);
    return 0;
}

#endif
