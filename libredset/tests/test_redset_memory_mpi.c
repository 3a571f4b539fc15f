/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory: the memory that encode and rebuild allocate at one time is bounded by the
 * configuration, whatever the size of the data. Buffers of MPI are not counted, and
 * nothing is counted with sanitizers, which have their own malloc. */
#include "check.h"
#include "scratch.h"

#include <link.h>
#include <malloc.h>
#include <redset/redset_mpi.h>

/* ---- counting what this program, with the library in it, allocates ---- */

#if defined(__SANITIZE_ADDRESS__)
#define CAN_COUNT 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CAN_COUNT 0
#endif
#endif

#ifndef CAN_COUNT
#define CAN_COUNT 1
#endif

static long now, most;

#if CAN_COUNT
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

/* Address ranges of the code of this program and of our libraries. */
static struct range {
    uintptr_t from, to;
} ours[8];

static int add_ours(struct dl_phdr_info *object, size_t size, void *arg)
{
    int *count = arg, is_program = object->dlpi_name[0] == 0;
    if (!is_program && !strstr(object->dlpi_name, "libscr-")) return 0;
    for (int i = 0; i < object->dlpi_phnum && *count < 8; i++) {
        uintptr_t at = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
        if (object->dlpi_phdr[i].p_type == PT_LOAD && object->dlpi_phdr[i].p_flags & PF_X)
            ours[(*count)++] = (struct range){at, at + object->dlpi_phdr[i].p_memsz};
    }
    return 0;
}

/* Whether a function was called from these ranges, not by MPI or another library. */
static int is_ours(const void *caller)
{
    for (int i = 0; i < 8; i++)
        if ((uintptr_t)caller >= ours[i].from && (uintptr_t)caller < ours[i].to) return 1;
    return 0;
}

#define IS_OURS is_ours(__builtin_return_address(0))

static void *count(void *block, int own)
{
    if (own && block) now += (long)malloc_usable_size(block);
    if (now > most) most = now;
    return block;
}

void *malloc(size_t size)
{
    return count(__libc_malloc(size), IS_OURS);
}

void *calloc(size_t number, size_t size)
{
    return count(__libc_calloc(number, size), IS_OURS);
}

char *strdup(const char *string)
{
    size_t size = strlen(string) + 1;
    void *copy = count(__libc_malloc(size), IS_OURS);
    return copy ? memcpy(copy, string, size) : NULL;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return count(__libc_memalign(alignment, size), IS_OURS);
}

void *realloc(void *block, size_t size)
{
    if (IS_OURS && block) now -= (long)malloc_usable_size(block);
    return count(__libc_realloc(block, size), IS_OURS);
}

void free(void *block)
{
    if (IS_OURS && block) now -= (long)malloc_usable_size(block);
    __libc_free(block);
}

static void find_ours(void)
{
    int count = 0;
    dl_iterate_phdr(add_ours, &count);
}
#else
static void find_ours(void)
{
}
#endif

/* ---- trials ---- */

enum { KiB = 1 << 10, MiB = 1 << 20 };

/* Memory besides the buffers: headers, schedules, lists of two files; and the memory that
 * libkvtree keeps for a communicator from its first exchange on, which only a rebuild
 * with a loss makes. */
enum { SMALL = 64 * KiB, CHANNEL = MiB };

typedef struct trial {
    redset_scheme scheme;
    long memory, piece; /* of the configuration */
    long data;          /* bytes of this rank */
    char folder[64];
    redset *set;
} trial;

static long begin_counting(void)
{
    return most = now;
}

static void check_bound(const trial *t, const char *call, long before, long more)
{
    long bound = t->memory ? t->memory : 8L * MiB, used = most - before, all = 0;
    if (CAN_COUNT) CHECK(used > 0 && used <= bound + more);
    MPI_Reduce(&used, &all, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    if (check_rank == 0)
        printf("| %-3s | %8ld | %8ld | %9ld | %-16s | %8ld |\n",
               redset_scheme_name(t->scheme), bound, t->piece, t->data, call, all);
}

/* A few bytes and a hole. */
static void make_file(const trial *t, const char *name, long size)
{
    char path[1200];
    scratch_path(path, t->folder, name);
    scratch_write(t->folder, name, 4 * KiB, (unsigned)check_rank);
    if (truncate(path, size) != 0) abort();
}

static void encode(trial *t)
{
    char node[32];
    redset_error err = {""};
    redset_file files[] = {{.name = "one"}, {.name = "two"}};
    snprintf(node, sizeof node, "node%d", check_rank);
    const redset_config config = {.scheme = t->scheme,
                                  .set_size = check_ranks,
                                  .failure_group = node,
                                  .failures = t->scheme == REDSET_RS ? 2 : 1,
                                  .piece = (size_t)t->piece,
                                  .memory = (size_t)t->memory};
    CHECK_INT(redset_create(MPI_COMM_WORLD, &config, &t->set, &err), 0);
    long before = begin_counting();
    CHECK_INT(redset_encode(t->set, t->folder, NULL, 2, files, &err), 0);
    check_bound(t, "encode", before, SMALL);
    CHECK_STR(err.text, "");
}

static void rebuild(const trial *t, const char *call, int lost, int someone_lost)
{
    redset_error err = {""};
    redset_manifest *m = NULL;
    int rebuilt = -1;
    if (lost) scratch_remove(t->folder), mkdir(t->folder, 0700);
    long before = begin_counting();
    CHECK_INT(redset_rebuild(t->set, t->folder, &m, &rebuilt, &err), 0);
    check_bound(t, call, before, someone_lost ? SMALL + CHANNEL : SMALL);
    CHECK_STR(err.text, "");
    CHECK_INT(rebuilt, lost);
    redset_manifest_free(m);
}

static void test_memory_is_bounded(trial t)
{
    scratch_make(t.folder);
    make_file(&t, "one", t.data / 3);
    make_file(&t, "two", t.data - t.data / 3);
    encode(&t);
    rebuild(&t, "rebuild, nothing", 0, 0);
    rebuild(&t, "rebuild", check_rank < redset_get_place(t.set)->failures, 1);
    redset_free(t.set);
    scratch_remove(t.folder);
}

int main(int argc, char **argv)
{
    static const struct {
        long memory, piece, data;
    } configs[] = {{64 * KiB, 0, MiB}, {MiB, 0, MiB},         {MiB, 0, 64 * MiB},
                   {MiB, MiB, MiB},    {0, 0, MiB},           {0, 0, 64 * MiB},
                   {0, 64 * MiB, MiB}, {0, 64 * MiB, 9 * MiB}};
    find_ours();
    check_begin(&argc, &argv);
    if (check_rank == 0)
        printf(
            "| set | memory   | piece    | data      | call             | at most  |\n"
            "| --- | -------: | -------: | --------: | ---------------- | -------: |\n");
    for (size_t c = 0; c < sizeof configs / sizeof configs[0]; c++) {
        trial t = {.scheme = REDSET_XOR,
                   .memory = configs[c].memory,
                   .piece = configs[c].piece,
                   .data = configs[c].data};
        test_memory_is_bounded(t);
        t.scheme = REDSET_RS;
        test_memory_is_bounded(t);
    }
    return check_end();
}
