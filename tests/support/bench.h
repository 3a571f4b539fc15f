/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_BENCH_H
#define TESTS_BENCH_H

/* Shared by the benchmark programs: a clock, medians over several rounds, a directory in
 * memory, and tables, printed as Markdown and, with --json FILE, as JSON.
 *
 *     static const char *const columns[] = {"ranks", "pack [ms]", NULL};
 *     bench b;
 *     bench_begin(&b, argc, argv, columns);
 *     bench_measure(&b, 2, cases, medians);     the cases take turns, round after round
 *     bench_number(&b, 1000);
 *     bench_number(&b, 1e3 * medians[0]);       the row is full
 *     bench_table(&b, other_columns);           further numbers belong to another table
 *     return bench_end(&b);
 *
 * All files are in b.folder, below /dev/shm, which is removed at the end. If something
 * cannot be measured, the program ends. bench_mpi.h is the same for MPI programs. */

#include <fcntl.h>
#include <ftw.h>
#include <getopt.h>
#include <math.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    BENCH_TABLES = 4,
    BENCH_CELLS = 512,
    BENCH_COLUMNS = 16,
    BENCH_CASES = 16,
    BENCH_ROUNDS = 100
};
enum { KiB = 1024, MiB = 1024 * 1024 };

typedef struct bench_cell {
    char text[32];
    double value;
    int is_number;
} bench_cell;

typedef struct bench_sheet {
    const char *const *columns; /* headings, ended by NULL */
    int column_count, cell_count;
    bench_cell cells[BENCH_CELLS];
} bench_sheet;

typedef struct bench {
    bench_sheet tables[BENCH_TABLES]; /* the last one is being filled */
    int table_count;
    int rounds, quiet; /* quiet: another rank prints */
    const char *json;
    char folder[64];
} bench;

/* A case to measure: run executes it once and returns the seconds that count. */
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

/* Processor time of this process. For work that never waits it equals bench_now on an
 * idle machine, even if the machine is busy. */
static inline double bench_cpu(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- files ---- */

static inline int bench_remove_one(const char *path, const struct stat *st, int type,
                                   struct FTW *walk)
{
    (void)st, (void)type, (void)walk;
    return remove(path);
}

/* Removes path and everything below it. */
static inline void bench_remove(const char *path)
{
    nftw(path, bench_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* If ok is 0, nothing can be measured: cleans up, reports the mistake and ends the
 * program. */
static inline void bench_require(const bench *b, int ok, const char *what)
{
    if (ok) return;
    fprintf(stderr, "benchmark: %s\n", what);
    if (b->folder[0]) bench_remove(b->folder);
    exit(1);
}

/* Fills data with bytes that do not compress, the same in every run. */
static inline void bench_fill(void *data, size_t size)
{
    unsigned char *bytes = data;
    unsigned state = 1;
    for (size_t i = 0; i < size; i++) {
        state = state * 1103515245u + 12345u;
        bytes[i] = (unsigned char)(state >> 16);
    }
}

/* Makes a new file of size bytes. Its blocks repeat, which does not matter for
 * checksums. */
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

/* Does what `cp -r from to` does; synced: also syncs the file system of the copy. */
static inline void bench_copy(const bench *b, const char *from, const char *to,
                              int synced)
{
    char cp[] = "cp", recursive[] = "-r";
    char *command[] = {cp, recursive, (char *)(uintptr_t)from, (char *)(uintptr_t)to,
                       NULL};
    pid_t child;
    int status = 0, fd = -1;
    int ok = posix_spawnp(&child, cp, NULL, NULL, command, environ) == 0 &&
             waitpid(child, &status, 0) == child && status == 0;
    if (ok && synced)
        ok = (fd = open(to, O_RDONLY | O_DIRECTORY)) >= 0 && syncfs(fd) == 0;
    if (fd >= 0) close(fd);
    bench_require(b, ok, "cp failed");
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

/* Begins a table and completes the previous one. */
static inline void bench_table(bench *b, const char *const columns[])
{
    bench_require(b, b->table_count < BENCH_TABLES, "too many tables");
    bench_sheet *table = &b->tables[b->table_count++];
    table->columns = columns;
    while (columns[table->column_count])
        table->column_count++;
    bench_require(b, table->column_count <= BENCH_COLUMNS, "too many columns");
}

static inline void bench_begin(bench *b, int argc, char **argv,
                               const char *const columns[])
{
    memset(b, 0, sizeof *b);
    b->rounds = 5;
    bench_table(b, columns);
    bench_options(b, argc, argv);
    bench_make_folder(b);
    bench_require(b, b->folder[0], "no directory can be made in /dev/shm");
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

/* Measures the median seconds of each case. Cases take turns, so that other load on the
 * machine affects all of them; the first round is a warm-up and does not count. */
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

/* ---- the tables ---- */

static inline bench_cell *bench_cell_add(bench *b)
{
    bench_sheet *table = &b->tables[b->table_count - 1];
    bench_require(b, table->cell_count < BENCH_CELLS, "the table is too long");
    return &table->cells[table->cell_count++];
}

static inline void bench_text(bench *b, const char *text)
{
    bench_cell *cell = bench_cell_add(b);
    snprintf(cell->text, sizeof cell->text, "%s", text);
}

/* Adds a number: counts in full, other values with three digits; NAN, which means no
 * value, as a dash. */
static inline void bench_number(bench *b, double value)
{
    if (isnan(value)) {
        bench_text(b, "-");
        return;
    }
    bench_cell *cell = bench_cell_add(b);
    int before = value == 0 ? 1 : (int)floor(log10(fabs(value))) + 1;
    int behind = floor(value) == value || before >= 3 ? 0 : 3 - before;
    snprintf(cell->text, sizeof cell->text, "%.*f", behind, value);
    cell->value = value;
    cell->is_number = 1;
}

static inline int bench_width(const bench_sheet *table, int column)
{
    size_t width = strlen(table->columns[column]);
    for (int i = column; i < table->cell_count; i += table->column_count)
        if (strlen(table->cells[i].text) > width) width = strlen(table->cells[i].text);
    return (int)width;
}

static inline void bench_print(const bench_sheet *table)
{
    int width[BENCH_COLUMNS], columns = table->column_count;
    for (int i = 0; i < columns; i++)
        width[i] = bench_width(table, i);
    for (int i = 0; i < columns; i++)
        printf("| %*s ", width[i], table->columns[i]);
    printf("|\n");
    for (int i = 0; i < columns; i++)
        printf("| %.*s: ", width[i] - 1, "-----------------------------------------");
    for (int i = 0; i < table->cell_count; i++)
        printf("%s %*s ", i % columns ? "|" : "|\n|", width[i % columns],
               table->cells[i].text);
    printf("|\n");
}

static inline void bench_print_json_rows(const bench_sheet *table, FILE *file)
{
    for (int i = 0; i < table->cell_count; i++) {
        int column = i % table->column_count;
        const char *before = column ? ", " : i ? "},\n{" : "\n{";
        fprintf(file, "%s\"%s\": ", before, table->columns[column]);
        if (table->cells[i].is_number)
            fprintf(file, "%.9g", table->cells[i].value);
        else
            fprintf(file, "\"%s\"", table->cells[i].text);
    }
}

/* Writes an object for each row, with the headings as keys. The rows of the first table
 * are under "rows", those of further tables under "rows2", "rows3", ... */
static inline void bench_print_json(const bench *b)
{
    FILE *file = fopen(b->json, "w");
    bench_require(b, file != NULL, b->json);
    fprintf(file, "{\"rounds\": %d", b->rounds);
    for (int i = 0; i < b->table_count; i++) {
        fprintf(file, i ? ", \"rows%d\": [" : ", \"rows\": [", i + 1);
        bench_print_json_rows(&b->tables[i], file);
        fprintf(file, "}\n]");
    }
    fprintf(file, "}\n");
    bench_require(b, fclose(file) == 0, b->json);
}

/* Prints the tables and cleans up; returns the exit code of the program. */
static inline int bench_end(bench *b)
{
    if (b->quiet) return 0;
    for (int i = 0; i < b->table_count; i++) {
        const bench_sheet *table = &b->tables[i];
        bench_require(b,
                      table->cell_count && table->cell_count % table->column_count == 0,
                      "a table is not full");
    }
    bench_remove(b->folder);
    for (int i = 0; i < b->table_count; i++) {
        if (i) printf("\n");
        bench_print(&b->tables[i]);
    }
    if (b->json) bench_print_json(b);
    return 0;
}

#endif
