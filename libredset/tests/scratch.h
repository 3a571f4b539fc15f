/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_TESTS_SCRATCH_H
#define REDSET_TESTS_SCRATCH_H

/* Files for tests: with bytes that depend on a seed; compared, counted, removed. */

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A new directory, in memory if possible, because some tests sync thousands of files;
 * scratch_remove removes it with its contents. */
static inline void scratch_make(char path[64])
{
    strcpy(path, "/dev/shm/redset-test-XXXXXX");
    if (mkdtemp(path)) return;
    strcpy(path, "/tmp/redset-test-XXXXXX");
    if (!mkdtemp(path)) abort();
}

static inline int scratch_remove_one(const char *path, const struct stat *st, int type,
                                     struct FTW *walk)
{
    (void)st, (void)type, (void)walk;
    return remove(path);
}

static inline void scratch_remove(const char *path)
{
    nftw(path, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Bytes that depend on seed and place alone (an xorshift generator). */
static inline void scratch_bytes(unsigned char *buf, size_t size, unsigned seed)
{
    uint64_t x = seed * 0x9e3779b97f4a7c15u + 1;
    for (size_t i = 0; i < size; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        buf[i] = (unsigned char)(x >> 24);
    }
}

static inline void scratch_path(char path[1200], const char *folder, const char *name)
{
    snprintf(path, 1200, "%s/%s", folder, name);
}

static inline void scratch_put(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0) abort();
}

/* Writes a file with the bytes of a seed, and creates the directories above it. */
static inline void scratch_write(const char *folder, const char *name, size_t size,
                                 unsigned seed)
{
    char path[1200];
    scratch_path(path, folder, name);
    for (char *slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    unsigned char *data = malloc(size + 1);
    scratch_bytes(data, size, seed);
    scratch_put(path, data, size);
    free(data);
}

/* Returns all bytes of a file, freed by the caller; NULL if it does not exist. */
static inline unsigned char *scratch_read(const char *folder, const char *name,
                                          size_t *size)
{
    char path[1200];
    struct stat st;
    scratch_path(path, folder, name);
    FILE *file = fopen(path, "rb");
    *size = 0;
    if (!file) return NULL;
    if (fstat(fileno(file), &st) != 0) abort();
    unsigned char *data = malloc((size_t)st.st_size + 1);
    *size = fread(data, 1, (size_t)st.st_size, file);
    fclose(file);
    return data;
}

/* 1 when the file has exactly the bytes of a seed. */
static inline int scratch_same(const char *folder, const char *name, size_t size,
                               unsigned seed)
{
    size_t got;
    unsigned char *data = scratch_read(folder, name, &got);
    if (!data) return 0;
    unsigned char *expected = malloc(size + 1);
    scratch_bytes(expected, size, seed);
    int same = got == size && memcmp(data, expected, size) == 0;
    free(data);
    free(expected);
    return same;
}

/* Flips one bit at an offset of a file. */
static inline void scratch_flip(const char *folder, const char *name, size_t offset)
{
    size_t size;
    char path[1200];
    unsigned char *data = scratch_read(folder, name, &size);
    if (!data || offset >= size) abort();
    data[offset] ^= 4;
    scratch_path(path, folder, name);
    scratch_put(path, data, size);
    free(data);
}

/* Counts the entries of a directory, including hidden ones, but not those of
 * subdirectories. */
static inline int scratch_count(const char *folder)
{
    int count = 0;
    DIR *dir = opendir(folder);
    if (!dir) return -1;
    while (readdir(dir))
        count++;
    closedir(dir);
    return count - 2;
}

#endif
