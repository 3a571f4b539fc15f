/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FILO_TESTS_LISTS_H
#define FILO_TESTS_LISTS_H

/* Lists of files for the tests: rank r of a communicator has some files with known bytes
 * in a cache directory; after a flush and a fetch they must have these bytes again. */

#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <filo/filo_mpi.h>
#include <ftw.h>
#include <stdint.h>
#include <sys/stat.h>

enum { LIST_MAX = 8 };

typedef struct list {
    int count;
    filo_file files[LIST_MAX];
    char local[LIST_MAX][256];
    char name[LIST_MAX][256];
} list;

/* Byte number i of file f of rank r. */
static inline unsigned char list_byte(int r, int f, size_t i)
{
    return (unsigned char)(i * 31 + i / 251 + (size_t)r * 7 + (size_t)f * 13);
}

/* Empty files, small ones, and some that are larger than any buffer. */
static inline size_t list_size(int r, int f)
{
    return f == 0 ? (size_t)(r % 3) * 1000 : f == 1 ? 0 : 300000 + (size_t)r;
}

static inline void list_write(const char *path, const void *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    CHECK(fd >= 0);
    CHECK(write(fd, bytes, size) == (ssize_t)size);
    CHECK(close(fd) == 0);
}

/* Fills in paths and names of count files that rank r has below folder/cache. */
static inline void list_init(list *l, const char *folder, int r, int count)
{
    memset(l, 0, sizeof *l);
    l->count = count;
    for (int f = 0; f < count; f++) {
        snprintf(l->local[f], sizeof l->local[f], "%s/cache-r%d-f%d", folder, r, f);
        snprintf(l->name[f], sizeof l->name[f],
                 f == 2 ? "sub of %d/deep/er/file %d" : "rank_%d.%d.ckpt", r, f);
        l->files[f].local = l->local[f];
        l->files[f].name = l->name[f];
        l->files[f].size = list_size(r, f);
    }
}

static inline void list_create(list *l, const char *folder, int r, int count)
{
    list_init(l, folder, r, count);
    for (int f = 0; f < count; f++) {
        size_t size = list_size(r, f);
        unsigned char *bytes = malloc(size + 1);
        for (size_t i = 0; bytes && i < size; i++)
            bytes[i] = list_byte(r, f, i);
        list_write(l->local[f], bytes, size);
        free(bytes);
    }
}

static inline int list_file_is_good(const char *path, int r, int f)
{
    size_t size = list_size(r, f), i = 0;
    FILE *stream = fopen(path, "rb");
    if (!stream) return 0;
    for (int c; (c = fgetc(stream)) != EOF; i++)
        if (i >= size || c != list_byte(r, f, i)) break;
    int good = feof(stream) && i == size;
    fclose(stream);
    return good;
}

static inline void list_expect(const list *l, int r)
{
    for (int f = 0; f < l->count; f++)
        CHECK(list_file_is_good(l->local[f], r, f));
}

static inline void list_unlink(const list *l)
{
    for (int f = 0; f < l->count; f++)
        CHECK(unlink(l->local[f]) == 0 || errno == ENOENT);
}

/* Checks that no local file exists. */
static inline void list_expect_none(const list *l)
{
    for (int f = 0; f < l->count; f++)
        CHECK(access(l->local[f], F_OK) != 0);
}

static inline int list_exists(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

/* A checksum of all files below a directory, with their names, bytes and modes;
 * directories are ignored. */
static uint64_t list_sum;
static int list_temporaries; /* temporary files found on the way */

static inline uint64_t list_hash(uint64_t h, unsigned char byte)
{
    return (h ^ byte) * 1099511628211u;
}

static inline int list_is_staged(const char *path)
{
    return strstr(path, "/stage/") != NULL;
}

static inline int list_is_temporary(const char *path)
{
    return list_is_staged(path) ||
           (strlen(path) > 4 && strcmp(path + strlen(path) - 4, ".tmp") == 0);
}

static inline int list_add_to_sum(const char *path, const struct stat *st, int type,
                                  struct FTW *position)
{
    uint64_t h = 14695981039346656037u;
    FILE *stream = type == FTW_F ? fopen(path, "rb") : NULL;
    if (!stream) return 0;
    list_temporaries += list_is_temporary(path);
    for (const char *p = path; *p; p++)
        h = list_hash(h, (unsigned char)*p);
    for (int c; (c = fgetc(stream)) != EOF;)
        h = list_hash(h, (unsigned char)c);
    list_sum += list_hash(h, (unsigned char)(st->st_mode & 0777));
    return fclose(stream);
}

static inline uint64_t list_folder_sum(const char *path)
{
    MPI_Barrier(MPI_COMM_WORLD);
    list_sum = 0;
    list_temporaries = 0;
    nftw(path, list_add_to_sum, 16, FTW_PHYS);
    MPI_Barrier(MPI_COMM_WORLD);
    return list_sum;
}

/* Checks that the text is the same on every rank, and contains part. */
static inline void list_expect_text(const char *err, const char *part)
{
    filo_error first;
    memcpy(first.text, err, sizeof first.text);
    MPI_Bcast(first.text, (int)sizeof first.text, MPI_CHAR, 0, MPI_COMM_WORLD);
    CHECK_STR(err, first.text);
    if (!strstr(err, part)) CHECK_STR(err, part); /* reports both texts */
}

/* Checks that the map has the names, sizes and checksums of the list, and adds the local
 * paths to it. */
static inline void list_adopt(const list *l, int count, filo_file *files)
{
    CHECK_INT(count, l->count);
    for (int f = 0; f < count && f < l->count; f++) {
        CHECK_STR(files[f].name, l->name[f]);
        CHECK_INT(files[f].size, l->files[f].size);
        CHECK_INT(files[f].has_crc, l->files[f].has_crc);
        if (files[f].has_crc) CHECK_INT(files[f].crc, l->files[f].crc);
        CHECK(files[f].local == NULL);
        files[f].local = strdup(l->local[f]);
    }
}

#endif
