/* SPDX-License-Identifier: BSD-3-Clause */
/* Contents of files: a stream of numbers that is derived from the names of dataset, rank
 * and file, so that any later run knows every expected byte. */
#include "probe.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define BLOCK ((size_t)4096)

/* FNV-1a */
static uint64_t mix(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return (hash ^ 0xff) * 0x100000001b3u;
}

static uint64_t seed(const struct probe *p)
{
    char rank[16];
    snprintf(rank, sizeof rank, "%d", p->rank);
    return mix(mix(mix(0xcbf29ce484222325u, p->tag), rank), p->file) | 1;
}

/* xorshift64 */
static void fill(uint64_t *state, unsigned char block[BLOCK])
{
    for (size_t i = 0; i < BLOCK; i++) {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        block[i] = (unsigned char)(*state >> 32);
    }
}

static size_t bytes_of(const struct probe *p, long size)
{
    return size > 0 ? (size_t)size + 13 * (size_t)p->rank : 0;
}

int probe_write(const struct probe *p, long size, char text[PROBE_TEXT])
{
    unsigned char block[BLOCK];
    uint64_t state = seed(p);
    FILE *file = fopen(p->path, "w");
    int ok = file != NULL;
    for (size_t left = bytes_of(p, size); ok && left;) {
        size_t n = left < BLOCK ? left : BLOCK;
        fill(&state, block);
        ok = fwrite(block, 1, n, file) == n;
        left -= n;
    }
    if (file && fclose(file) != 0) ok = 0;
    if (!ok) snprintf(text, PROBE_TEXT, "write %.1024s: %s", p->path, strerror(errno));
    return !ok;
}

int probe_compare(const struct probe *p, long size, char text[PROBE_TEXT])
{
    unsigned char block[BLOCK], found[BLOCK];
    uint64_t state = seed(p);
    size_t at = 0, want = bytes_of(p, size), n = 0;
    FILE *file = fopen(p->path, "r");
    if (!file) {
        snprintf(text, PROBE_TEXT, "open %.1024s: %s", p->path, strerror(errno));
        return 1;
    }
    int same = 1;
    while (same && (n = fread(found, 1, BLOCK, file)) > 0) {
        fill(&state, block);
        same = at + n <= want && memcmp(found, block, n) == 0;
        at += n;
    }
    fclose(file);
    if (same && at == want) return 0;
    snprintf(text, PROBE_TEXT, "%.1024s %s within its first %zu bytes; %zu were written",
             p->path, same ? "ends" : "differs", at, want);
    return 1;
}
