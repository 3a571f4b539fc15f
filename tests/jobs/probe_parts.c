/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that ranks write together, each rank its parts. A byte is derived from the names
 * of the dataset and the file, and from its offset, whichever rank writes it. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <scr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 1 << 16 };

/* A file of `rounds` rounds; in each, every rank has `unit` bytes plus the number of its
 * place. */
struct shared {
    char name[SCR_MAX_FILENAME];
    uint64_t unit;
    int rounds;
};

static void parse(const char *arg, struct shared *s)
{
    *s = (struct shared){.rounds = 1};
    sscanf(arg, "%1023[^:]:%" SCNu64 ":%d", s->name, &s->unit, &s->rounds);
}

/* NAME:OFFSET:LENGTH; NAME may be "%N": NULL. */
struct range {
    char text[PROBE_TEXT];
    const char *name;
    uint64_t offset, length;
};

static uint64_t cut_number(char *text)
{
    char *colon = strrchr(text, ':');
    if (colon) *colon = 0;
    return colon ? strtoull(colon + 1, NULL, 10) : 0;
}

static void parse_range(const char *arg, struct range *s)
{
    snprintf(s->text, sizeof s->text, "%s", arg);
    s->length = cut_number(s->text);
    s->offset = cut_number(s->text);
    s->name = strcmp(s->text, "%N") == 0 ? NULL : s->text;
}

static uint64_t round_size(const struct probe *p, const struct shared *s)
{
    const uint64_t ranks = (uint64_t)p->ranks;
    return ranks * s->unit + ranks * (ranks - 1) / 2;
}

/* Ranks change places from round to round. */
static void find_part(const struct probe *p, const struct shared *s, int round,
                      uint64_t *offset, uint64_t *length)
{
    const uint64_t place = (uint64_t)((p->rank + round) % p->ranks);
    *offset = (uint64_t)round * round_size(p, s) + place * s->unit;
    if (place > 0) *offset += place * (place - 1) / 2;
    *length = s->unit + place;
}

static unsigned seed_of(const struct probe *p, const char *name)
{
    unsigned seed = 17;
    for (const char *c = p->tag; *c; c++)
        seed = seed * 31 + (unsigned char)*c;
    for (const char *c = name; *c; c++)
        seed = seed * 31 + (unsigned char)*c;
    return seed;
}

static void fill(unsigned seed, uint64_t offset, size_t n, unsigned char bytes[])
{
    for (size_t i = 0; i < n; i++, offset++)
        bytes[i] = (unsigned char)(seed + offset * 31 + offset / 251);
}

/* Transfers all n bytes, or fewer at the end of the file; -1: failure. */
static ssize_t transfer(int fd, unsigned char bytes[], size_t n, uint64_t at, int writes)
{
    size_t done = 0;
    while (done < n) {
        const off_t to = (off_t)(at + done);
        ssize_t more = writes ? pwrite(fd, bytes + done, n - done, to)
                              : pread(fd, bytes + done, n - done, to);
        if (more < 0 && errno == EINTR) continue;
        if (more < 0) return -1;
        if (more == 0) break;
        done += (size_t)more;
    }
    return (ssize_t)done;
}

static int open_again(const char *path, int flags)
{
    int fd;
    do
        fd = open(path, flags | O_CLOEXEC, 0644);
    while (fd < 0 && errno == EINTR);
    return fd;
}

static int write_part(const struct probe *p, const char *path, uint64_t at,
                      const char *name, uint64_t offset, uint64_t length)
{
    static unsigned char bytes[PIECE];
    int fd = open_again(path, O_WRONLY | O_CREAT), bad = fd < 0;
    for (uint64_t done = 0, n; done < length && !bad; done += n) {
        n = length - done < PIECE ? length - done : PIECE;
        fill(seed_of(p, name), offset + done, n, bytes);
        bad = transfer(fd, bytes, n, at + done, 1) != (ssize_t)n;
    }
    if (fd >= 0) bad |= close(fd) != 0 && errno != EINTR;
    return bad;
}

static int compare_part(const struct probe *p, const char *path, uint64_t at,
                        const char *name, uint64_t offset, uint64_t length)
{
    static unsigned char bytes[PIECE], expected[PIECE];
    int fd = open_again(path, O_RDONLY), bad = fd < 0;
    for (uint64_t done = 0, n; done < length && !bad; done += n) {
        n = length - done < PIECE ? length - done : PIECE;
        fill(seed_of(p, name), offset + done, n, expected);
        bad = transfer(fd, bytes, n, at + done, 0) != (ssize_t)n ||
              memcmp(bytes, expected, n) != 0;
    }
    if (fd >= 0) close(fd);
    return bad;
}

typedef int use_part(const struct probe *, const char *, uint64_t, const char *, uint64_t,
                     uint64_t);

static void route(struct probe *p, struct result *r, const char *name, uint64_t offset,
                  uint64_t length, use_part *use)
{
    uint64_t at = 0;
    const int code = SCR_Route_file_part(name, offset, length, p->path, &at);
    if (!r->code) r->code = code; /* the rest is done even after a failure */
    if (code || !use(p, p->path, at, name, offset, length)) return;
    r->code = SCR_FAILURE;
    r->has_text = 1;
    snprintf(r->text, sizeof r->text, "%.1000s has not bytes %" PRIu64 " to %" PRIu64,
             p->path, offset, offset + length);
}

static void all_parts(struct probe *p, const char *arg, struct result *r, use_part *use)
{
    struct shared s;
    uint64_t offset, length;
    parse(arg, &s);
    for (int round = 0; round < s.rounds; round++) {
        find_part(p, &s, round, &offset, &length);
        route(p, r, s.name, offset, length, use);
    }
}

void probe_put_parts(struct probe *p, const char *arg, struct result *r)
{
    all_parts(p, arg, r, write_part);
}

void probe_get_parts(struct probe *p, const char *arg, struct result *r)
{
    all_parts(p, arg, r, compare_part);
}

void probe_get_range(struct probe *p, const char *arg, struct result *r)
{
    struct range s;
    parse_range(arg, &s);
    route(p, r, s.name, s.offset, s.length, compare_part);
}

void probe_put_range(struct probe *p, const char *arg, struct result *r)
{
    struct range s;
    parse_range(arg, &s);
    route(p, r, s.name, s.offset, s.length, write_part);
}

void probe_part(struct probe *p, const char *arg, struct result *r)
{
    struct range s;
    uint64_t at = 77;
    parse_range(arg, &s);
    strcpy(p->path, "(untouched)");
    r->code = SCR_Route_file_part(s.name, s.offset, s.length, p->path, &at);
    r->has_text = 1;
    snprintf(r->text, sizeof r->text, "%.1000s:%" PRIu64, p->path, at);
}

void probe_part_nowhere(struct probe *p, const char *arg, struct result *r)
{
    struct range s;
    uint64_t at = 77;
    parse_range(arg, &s);
    strcpy(p->path, "(untouched)");
    const int codes[] = {SCR_Route_file_part(s.name, s.offset, s.length, NULL, &at),
                         SCR_Route_file_part(s.name, s.offset, s.length, p->path, NULL),
                         SCR_Route_file_part(s.name, s.offset, s.length, NULL, NULL)};
    r->code = codes[0] == codes[1] && codes[0] == codes[2] ? codes[0] : -1;
    r->has_text = 1;
    snprintf(r->text, sizeof r->text, "%.1000s:%" PRIu64, p->path, at);
}

/* The bytes that each rank reads: about the same number each, or all. */
static void fetch(struct probe *p, const char *arg, struct result *r, int ranks, int rank,
                  use_part *use)
{
    struct range s;
    parse_range(arg, &s);
    const char *const names[] = {s.name};
    const uint64_t share = s.length / (uint64_t)ranks, mine = (uint64_t)rank * share,
                   offset = s.offset + mine,
                   length = rank == ranks - 1 ? s.length - mine : share;
    r->code = SCR_Fetch_file_parts(1, names, &offset, &length);
    if (!r->code) route(p, r, s.name, offset, length, use);
}

void probe_fetch_parts(struct probe *p, const char *arg, struct result *r)
{
    const char *const names[] = {"a/all"};
    const uint64_t offsets[] = {0}, lengths[] = {1};
    r->code = SCR_Fetch_file_parts(arg[0] == '-' ? -1 : arg[0] != 0,
                                   strchr(arg, 'n') || !arg[0] ? NULL : names,
                                   strchr(arg, 'o') || !arg[0] ? NULL : offsets,
                                   strchr(arg, 'l') || !arg[0] ? NULL : lengths);
}

void probe_fetch_range(struct probe *p, const char *arg, struct result *r)
{
    fetch(p, arg, r, 1, 0, compare_part);
}

void probe_fetch_share(struct probe *p, const char *arg, struct result *r)
{
    fetch(p, arg, r, p->ranks, p->rank, compare_part);
}

static int compare_zeros(const struct probe *p, const char *path, uint64_t at,
                         const char *name, uint64_t offset, uint64_t length)
{
    int fd = open_again(path, O_RDONLY), bad = fd < 0;
    (void)p, (void)name, (void)offset;
    for (uint64_t done = 0; done < length && !bad; done++) {
        char byte = 1;
        bad = pread(fd, &byte, 1, (off_t)(at + done)) != 1 || byte;
    }
    if (fd >= 0) close(fd);
    return bad;
}

void probe_fetch_hole(struct probe *p, const char *arg, struct result *r)
{
    fetch(p, arg, r, 1, 0, compare_zeros);
}
