/* SPDX-License-Identifier: BSD-3-Clause */
/* Do the sets that were found in one folder fit together? They must be of one encode, and
 * no two processes may claim a name. */
#include "src/redset_private.h"

#include "common/errtext.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Somebody's claim: a set's to a rank or a number, a process's to a name. */
typedef struct claim {
    const char *name; /* NULL: number instead */
    int number;
    int owner;
} claim;

/* In an order that has what is in a folder right behind the folder. */
static int compare_names(const char *a, const char *b)
{
    size_t i = 0;
    while (a[i] && a[i] == b[i])
        i++;
    int x = (unsigned char)a[i], y = (unsigned char)b[i];
    return (x == '/' ? 1 : x << 1) - (y == '/' ? 1 : y << 1);
}

/* One name is that of a folder of the other. */
static bool is_above(const char *folder, const char *name)
{
    size_t length = strlen(folder);
    return strncmp(folder, name, length) == 0 && name[length] == '/';
}

static int compare_claims(const void *x, const void *y)
{
    const claim *a = x, *b = y;
    int names = a->name && b->name ? compare_names(a->name, b->name) : 0;
    if (names) return names;
    if (a->number != b->number) return a->number < b->number ? -1 : 1;
    return (a->owner > b->owner) - (a->owner < b->owner);
}

/* The first of two claims to one thing by different owners, or to a file and to a folder
 * of one name; the other one is behind it. NULL: there are none. */
static const claim *find_conflict(claim *claims, size_t count)
{
    qsort(claims, count, sizeof *claims, compare_claims);
    for (size_t i = 1; i < count; i++) {
        const claim *a = &claims[i - 1], *b = &claims[i];
        bool same = a->name ? strcmp(a->name, b->name) == 0 : a->number == b->number;
        if (same && a->owner != b->owner) return a;
        if (a->name && is_above(a->name, b->name)) return a;
    }
    return NULL;
}

/* A redundancy file that tells of the set. */
static const char *witness(const redset_group *g)
{
    for (int m = 0; m < g->shape.members; m++)
        if (g->member[m].header) return g->member[m].name;
    return g->member[0].name;
}

static int contradict(const redset_group *a, const redset_group *b, const char *what,
                      char *err)
{
    return err_set(err, REDSET_UNRECOVERABLE,
                   "redundancy files are of different encodes: %s and %s contradict each "
                   "other about %s",
                   witness(a), witness(b), what);
}

/* No two sets have one rank. */
static int check_ranks(redset_group *const groups[], int count, char *err)
{
    size_t ranks = 0, n = 0;
    for (int i = 0; i < count; i++)
        ranks += (size_t)groups[i]->shape.members;
    claim *claims = calloc(ranks + 1, sizeof *claims);
    if (!claims) return err_sys(err, -ENOMEM, "%zu ranks", ranks);
    for (int i = 0; i < count; i++)
        for (int m = 0; m < groups[i]->shape.members; m++)
            claims[n++] = (claim){.number = groups[i]->layout.members[m], .owner = i};
    const claim *bad = find_conflict(claims, n);
    int rc =
        bad ? contradict(groups[bad[0].owner], groups[bad[1].owner], "ranks", err) : 0;
    free(claims);
    return rc;
}

/* No two sets have one number. */
static int check_numbers(redset_group *const groups[], int count, char *err)
{
    claim *claims = calloc((size_t)count + 1, sizeof *claims);
    if (!claims) return err_sys(err, -ENOMEM, "%d sets", count);
    for (int i = 0; i < count; i++)
        claims[i] = (claim){.number = groups[i]->layout.place.set, .owner = i};
    const claim *bad = find_conflict(claims, (size_t)count);
    int rc =
        bad ? contradict(groups[bad[0].owner], groups[bad[1].owner], "set numbers", err)
            : 0;
    free(claims);
    return rc;
}

/* The checksum of what all headers of an encode have in common; -ENOENT when nobody is
 * left. */
static int checksum(const redset_group *g, uint32_t *crc)
{
    for (int m = 0; m < g->shape.members; m++) {
        const redset_header *h = g->member[m].header;
        if (!h) continue;
        int rc = redset_tree_crc(kvtree_get(h->tree, "DSET"), crc);
        return rc ? rc : redset_tree_crc(kvtree_get(h->tree, "ENCODE"), crc);
    }
    return -ENOENT;
}

/* All sets tell the same of the whole. */
static int check_about(redset_group *const groups[], int count, char *err)
{
    uint32_t first = 0;
    const redset_group *known = NULL;
    for (int i = 0; i < count; i++) {
        uint32_t crc = 0;
        const redset_layout *a = &groups[0]->layout, *b = &groups[i]->layout;
        if (a->ranks != b->ranks || a->place.sets != b->place.sets)
            return contradict(groups[0], groups[i], "the number of ranks or sets", err);
        int rc = checksum(groups[i], &crc);
        if (rc == -ENOENT) continue;
        if (rc) return err_sys(err, rc, "description of set %d", b->place.id);
        if (known && crc != first)
            return contradict(known, groups[i], "what they are of", err);
        first = crc;
        known = groups[i];
    }
    return 0;
}

int redset_groups_check_encode(redset_group *const groups[], int count, char *err)
{
    int rc = check_about(groups, count, err);
    if (!rc) rc = check_numbers(groups, count, err);
    return rc ? rc : check_ranks(groups, count, err);
}

/* ---- one folder has room for all files ---- */

/* Adds the names of the files that a member's header knows of, its neighbours' too. */
static size_t claim_files(const redset_group *g, int m, claim *claims)
{
    size_t count = 0;
    const redset_header *h = g->member[m].header;
    for (int d = 0; h && d <= g->shape.failures; d++)
        for (int i = 0; i < h->list[d].count; i++, count++)
            if (claims)
                claims[count] =
                    (claim){.name = h->list[d].files[i].name, .owner = h->list[d].rank};
    return count;
}

/* The names of all files of a set, the number of which is returned; claims may be NULL.
 */
static size_t claim_names(const redset_group *g, int set, claim *claims)
{
    size_t count = 0;
    for (int m = 0; m < g->shape.members; m++) {
        count += claim_files(g, m, claims ? claims + count : NULL);
        if (claims) claims[count] = (claim){.name = g->member[m].name, .owner = -1 - set};
        count++;
    }
    return count;
}

int redset_groups_check_names(redset_group *const groups[], int count, char *err)
{
    size_t room = 0, n = 0;
    for (int i = 0; i < count; i++)
        room += claim_names(groups[i], i, NULL);
    claim *claims = calloc(room + 1, sizeof *claims);
    if (!claims) return err_sys(err, -ENOMEM, "%zu names", room);
    for (int i = 0; i < count; i++)
        n += claim_names(groups[i], i, claims + n);
    const claim *bad = find_conflict(claims, n);
    int rc = 0;
    if (bad && strcmp(bad[0].name, bad[1].name) == 0)
        rc = err_set(err, -EINVAL,
                     "one folder cannot hold the files of all ranks: two of them have %s",
                     bad->name);
    else if (bad)
        rc = err_set(err, -EINVAL,
                     "one folder cannot hold the files of all ranks: %s and %s",
                     bad[0].name, bad[1].name);
    free(claims);
    return rc;
}
