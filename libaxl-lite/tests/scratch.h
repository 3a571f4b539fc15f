/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef AXL_TESTS_SCRATCH_H
#define AXL_TESTS_SCRATCH_H

/* A separate directory for every test, with files of known bytes, and checks of what
 * remains there. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct scratch {
    char folder[64];
    char source[128];
    char destination[128];
} scratch;

static inline int scratch_make(void **state)
{
    scratch *s = calloc(1, sizeof *s);
    if (!s) return -1;
    strcpy(s->folder, "/dev/shm/scr-axl-XXXXXX"); /* where syncing costs nothing */
    if (!mkdtemp(s->folder)) {
        strcpy(s->folder, "/tmp/scr-axl-XXXXXX");
        if (!mkdtemp(s->folder)) return -1;
    }
    snprintf(s->source, sizeof s->source, "%s/source", s->folder);
    snprintf(s->destination, sizeof s->destination, "%s/out/destination", s->folder);
    *state = s;
    return 0;
}

static inline int scratch_unlink(const char *path, const struct stat *st, int type,
                                 struct FTW *where)
{
    return remove(path);
}

static inline int scratch_remove(void **state)
{
    scratch *s = *state;
    int rc = nftw(s->folder, scratch_unlink, 16, FTW_DEPTH | FTW_PHYS);
    free(s);
    return rc;
}

/* Returns bytes that vary with the position and repeat only after a long distance. */
static inline unsigned char *scratch_bytes(size_t size)
{
    unsigned char *bytes = malloc(size + 1);
    assert_non_null(bytes);
    uint32_t x = 2463534242u;
    for (size_t i = 0; i < size; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        bytes[i] = (unsigned char)x;
    }
    return bytes;
}

static inline void scratch_write(const char *path, const void *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static inline void scratch_expect(const char *path, const void *bytes, size_t size)
{
    unsigned char *got = malloc(size + 1);
    FILE *f = fopen(path, "rb");
    assert_non_null(got);
    assert_non_null(f);
    assert_int_equal(fread(got, 1, size + 1, f), size);
    assert_memory_equal(got, bytes, size);
    fclose(f);
    free(got);
}

/* Returns the number of names in a directory, including hidden ones; -1 if there is no
 * such directory. */
static inline int scratch_count(const char *folder)
{
    int count = 0;
    DIR *dir = opendir(folder);
    if (!dir) return -1;
    for (struct dirent *e; (e = readdir(dir));)
        count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(dir);
    return count;
}

/* Returns the number of names in the directory of the destination; a missing directory
 * counts as empty. */
static inline int scratch_left(const scratch *s)
{
    char folder[128];
    snprintf(folder, sizeof folder, "%s/out", s->folder);
    int count = scratch_count(folder);
    return count < 0 ? 0 : count;
}

#endif
