/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FUZZ_RECORDS_H
#define FUZZ_RECORDS_H

/* Independent readers of the records in docs/formats/scr.md, which share no code with the
 * library. */

#include "fuzz_lines.h"
#include "prefix/flush_file.h"

#include <limits.h>
#include <stdio.h>

/* Owner of the cache. */
#define OWNER "u/scr.1"

/* ---- names ---- */

/* Whether name is valid and stays below its directory. */
static inline bool told_name(const char *name)
{
    size_t n = strlen(name);
    const char *part = name;
    if (n == 0 || n >= 1024) return false;
    for (size_t i = 0; i <= n; i++) {
        unsigned char c = (unsigned char)name[i];
        size_t length = (size_t)(name + i - part);
        if (i < n && (c < 0x20 || c == 0x7f)) return false;
        if (c != '/' && c != 0) continue;
        if (length == 0 || (length == 1 && part[0] == '.') ||
            (length == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        part = name + i + 1;
    }
    return true;
}

/* Whether name is valid for a dataset. */
static inline bool told_dataset_name(const char *name)
{
    size_t first = strcspn(name, "/");
    return told_name(name) && !(first == 4 && strncmp(name, ".scr", 4) == 0);
}

/* Reads a number in its shortest form. */
static inline bool told_key(const char *key, int low, int high, int *number)
{
    uint64_t value = 0;
    if (!*key || strlen(key) > 10 || (key[0] == '0' && key[1])) return false;
    for (const char *c = key; *c; c++) {
        if (!isdigit((unsigned char)*c)) return false;
        value = 10 * value + (uint64_t)(*c - '0');
    }
    if (value > (uint64_t)high || (int)value < low) return false;
    *number = (int)value;
    return true;
}

/* ---- description ---- */

/* Reads a key that may be missing. */
static inline bool told_int(const kvtree *tree, const char *key, int low, int high,
                            int *value)
{
    return !kvtree_get(tree, key) || fuzz_integer(tree, key, low, high, value);
}

static inline bool told_text(const kvtree *tree, const char *key, char *text, size_t size)
{
    const char *value = fuzz_value(tree, key);
    if (!kvtree_get(tree, key)) return true;
    if (!value || strlen(value) >= size) return false;
    snprintf(text, size, "%s", value);
    return true;
}

static inline bool told_dataset(const kvtree *tree, scr_dataset *d)
{
    uint64_t size = 0, created = 0, files = 0;
    memset(d, 0, sizeof *d);
    if (!fuzz_integer(tree, "ID", 1, 1000000000, &d->id) ||
        !told_int(tree, "CKPT", 0, 1000000000, &d->ckpt) ||
        !told_int(tree, "OUTPUT", 0, 1, &d->output) ||
        !told_int(tree, "SCATTERED", 0, 1, &d->scattered) ||
        !told_int(tree, "BYPASS", 0, 1, &d->bypass) ||
        !told_int(tree, "RANKS", 1, INT_MAX, &d->ranks) ||
        !told_int(tree, "COMPLETE", 0, 1, &d->complete))
        return false;
    if ((kvtree_get(tree, "FILES") &&
         !fuzz_number(tree, "FILES", FUZZ_SIGN, INT64_MAX, &files)) ||
        (kvtree_get(tree, "SIZE") &&
         !fuzz_number(tree, "SIZE", FUZZ_DIGITS, ULONG_MAX, &size)) ||
        (kvtree_get(tree, "CREATED") &&
         !fuzz_number(tree, "CREATED", FUZZ_SIGN, INT64_MAX, &created)))
        return false;
    d->files = (long)files;
    d->size = size;
    d->created = (int64_t)created;
    return told_text(tree, "NAME", d->name, sizeof d->name) &&
           told_text(tree, "USER", d->user, sizeof d->user) &&
           told_text(tree, "JOBID", d->job_id, sizeof d->job_id) &&
           told_text(tree, "JOBNAME", d->job_name, sizeof d->job_name) &&
           told_text(tree, "CLUSTER", d->cluster, sizeof d->cluster) &&
           told_dataset_name(d->name);
}

static inline bool same_dataset(const scr_dataset *a, const scr_dataset *b)
{
    return a->id == b->id && a->ckpt == b->ckpt && a->output == b->output &&
           a->scattered == b->scattered && a->bypass == b->bypass &&
           a->ranks == b->ranks && a->files == b->files && a->complete == b->complete &&
           a->size == b->size && a->created == b->created &&
           strcmp(a->name, b->name) == 0 && strcmp(a->user, b->user) == 0 &&
           strcmp(a->job_id, b->job_id) == 0 && strcmp(a->job_name, b->job_name) == 0 &&
           strcmp(a->cluster, b->cluster) == 0;
}

/* ---- filemap ---- */

static inline bool told_path(const char *path, int id)
{
    char folder[64];
    snprintf(folder, sizeof folder, "/" OWNER "/scr.dataset.%d/", id);
    return path[0] == '/' && told_name(path + 1) && strstr(path, folder);
}

/* Returns the number of pairs of rank and dataset, and the number of their files; -1: the
 * map is refused. */
static inline int told_filemap(const kvtree *map, int *files)
{
    int pairs = 0, rank, id;
    *files = 0;
    kvtree_elem *r = kvtree_elem_first(kvtree_get(map, "RANK"));
    for (; r; r = kvtree_elem_next(r)) {
        if (!told_key(kvtree_elem_key(r), 0, INT_MAX, &rank)) return -1;
        kvtree_elem *d = kvtree_elem_first(kvtree_get(kvtree_elem_hash(r), "DSET"));
        for (; d; d = kvtree_elem_next(d), pairs++) {
            if (!told_key(kvtree_elem_key(d), 1, 1000000000, &id)) return -1;
            kvtree_elem *f = kvtree_elem_first(kvtree_get(kvtree_elem_hash(d), "FILE"));
            for (; f; f = kvtree_elem_next(f), ++*files)
                if (!told_path(kvtree_elem_key(f), id)) return -1;
        }
    }
    return pairs;
}

/* ---- flush file ---- */

static inline bool told_hex(const char *text, uint64_t *number)
{
    if (!text || strlen(text) != 16) return false;
    for (*number = 0; *text; text++) {
        int digit = fuzz_digit(*text, 16);
        if (digit >= 16 || isupper((unsigned char)*text)) return false;
        *number = *number << 4 | (uint64_t)digit;
    }
    return true;
}

/* Whether the flush file is valid. */
static inline bool told_flush(const kvtree *flush)
{
    int id;
    kvtree_elem *e = kvtree_elem_first(kvtree_get(flush, "DSET"));
    for (; e; e = kvtree_elem_next(e))
        if (!told_key(kvtree_elem_key(e), 1, 1000000000, &id)) return false;
    return true;
}

/* ---- halt file ---- */

/* Reads a number with a sign. */
static inline bool told_time(const kvtree *halt, const char *key, int64_t *time)
{
    uint64_t n = 0;
    const char *text = fuzz_value(halt, key);
    if (!text) return false;
    bool minus = *text == '-';
    text += minus || *text == '+';
    if (!*text) return false;
    for (; *text; text++) {
        if (!isdigit((unsigned char)*text) || n > (UINT64_MAX - 9) / 10) return false;
        n = 10 * n + (uint64_t)(*text - '0');
    }
    if (n > (uint64_t)INT64_MAX + minus) return false;
    *time = minus ? (int64_t)(0 - n) : (int64_t)n;
    return true;
}

__extension__ typedef __int128 wide;

/* Whether one of the conditions holds. With 128 bits, nothing overflows. */
static inline bool told_halt(const kvtree *halt, int64_t end, int64_t now)
{
    int64_t left, after, before, seconds = 0;
    told_time(halt, "HaltSeconds", &seconds);
    if (kvtree_size(kvtree_get(halt, "ExitReason")) > 0) return true;
    if (told_time(halt, "CheckpointsLeft", &left) && left >= INT_MIN && left <= 0)
        return true;
    if (told_time(halt, "ExitAfter", &after) && now >= after) return true;
    if (told_time(halt, "ExitBefore", &before) &&
        (now >= before || (wide)before - now <= seconds))
        return true;
    return end && seconds > 0 && (wide)end - now <= seconds;
}

#endif
