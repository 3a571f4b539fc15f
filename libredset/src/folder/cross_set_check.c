/* SPDX-License-Identifier: BSD-3-Clause */
/* Consistency of the sets in one directory: all are of one encode, and no two processes
 * claim the same name. */
#include "src/folder/folder.h"

#include "common/errtext.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A claim: a set claims a rank or a set number, or a process claims a name. */
typedef struct claim {
    const char *name; /* NULL: number instead */
    int number;
    int owner;
} claim;

/* Orders names such that the entries of a directory directly follow the directory. */
static int claim_compare_names(const char *a, const char *b)
{
    size_t i = 0;
    while (a[i] && a[i] == b[i])
        i++;
    int x = (unsigned char)a[i], y = (unsigned char)b[i];
    return (x == '/' ? 1 : x << 1) - (y == '/' ? 1 : y << 1);
}

static int claim_compare(const void *x, const void *y)
{
    const claim *a = x, *b = y;
    int names = a->name && b->name ? claim_compare_names(a->name, b->name) : 0;
    if (names) return names;
    if (a->number != b->number) return a->number < b->number ? -1 : 1;
    return (a->owner > b->owner) - (a->owner < b->owner);
}

/* Whether b, which follows a, is the same rank, number or name with another owner, or
 * lies below the file a. */
static bool claim_is_conflict(const claim *a, const claim *b)
{
    if (!a->name) return a->number == b->number && a->owner != b->owner;
    size_t length = strlen(a->name);
    if (strncmp(a->name, b->name, length) != 0) return false;
    return b->name[length] ? b->name[length] == '/' : a->owner != b->owner;
}

/* Returns the first of two conflicting claims; the other one follows it. NULL: none. */
static const claim *claim_find_conflict(claim *claims, size_t count)
{
    qsort(claims, count, sizeof *claims, claim_compare);
    for (size_t i = 1; i < count; i++)
        if (claim_is_conflict(&claims[i - 1], &claims[i])) return &claims[i - 1];
    return NULL;
}

/* ---- one encode ---- */

/* Returns the name of a redundancy file that describes the set. */
static const char *check_witness(const redset_recovery *r)
{
    for (int m = 0; m < r->shape.members; m++)
        if (r->member[m].header) return r->member[m].name;
    return r->member[0].name;
}

static int check_contradict(const redset_recovery *a, const redset_recovery *b,
                            const char *what, redset_error *err)
{
    return err_set(err, REDSET_UNRECOVERABLE,
                   "redundancy files are of different encodes: %s and %s contradict each "
                   "other about %s",
                   check_witness(a), check_witness(b), what);
}

/* Checks that no two sets have the same rank or number. */
static int check_ranks_and_numbers(redset_recovery *const sets[], int count,
                                   redset_error *err)
{
    size_t ranks = 0, n = 0;
    for (int i = 0; i < count; i++)
        ranks += (size_t)sets[i]->shape.members;
    claim *claims = calloc(ranks + 1, sizeof *claims);
    if (!claims) return err_sys(err, -ENOMEM, "%zu ranks", ranks);
    for (int i = 0; i < count; i++)
        claims[i] = (claim){.number = sets[i]->set->layout.place.set, .owner = i};
    const char *what = "set numbers";
    const claim *bad = claim_find_conflict(claims, (size_t)count);
    for (int i = 0; i < count && !bad; i++)
        for (int m = 0; m < sets[i]->shape.members; m++)
            claims[n++] = (claim){.number = sets[i]->set->layout.members[m], .owner = i};
    if (!bad) {
        what = "ranks";
        bad = claim_find_conflict(claims, n);
    }
    int rc =
        bad ? check_contradict(sets[bad[0].owner], sets[bad[1].owner], what, err) : 0;
    free(claims);
    return rc;
}

/* Computes the checksum of the keys that are the same in all headers of an encode;
 * -ENOENT if no member survives. */
static int check_sum_common(const redset_recovery *r, uint32_t *crc)
{
    for (int m = 0; m < r->shape.members; m++) {
        const redset_header *h = r->member[m].header;
        if (!h) continue;
        int rc = redset_tree_crc(kvtree_get(h->tree, "DSET"), crc);
        return rc ? rc : redset_tree_crc(kvtree_get(h->tree, "ENCODE"), crc);
    }
    return -ENOENT;
}

int redset_check_one_encode(redset_recovery *const sets[], int count, redset_error *err)
{
    uint32_t first = 0;
    const redset_recovery *known = NULL;
    for (int i = 0; i < count; i++) {
        uint32_t crc = 0;
        const redset_layout *a = &sets[0]->set->layout, *b = &sets[i]->set->layout;
        if (a->ranks != b->ranks || a->place.sets != b->place.sets)
            return check_contradict(sets[0], sets[i], "the number of ranks or sets", err);
        int rc = check_sum_common(sets[i], &crc);
        if (rc == -ENOENT) continue;
        if (rc) return err_sys(err, rc, "description of set %d", b->place.id);
        if (known && crc != first)
            return check_contradict(known, sets[i], "what they are of", err);
        first = crc;
        known = sets[i];
    }
    return check_ranks_and_numbers(sets, count, err);
}

/* ---- one directory ---- */

/* Adds the names of all files of set number `set`, as listed in any header. Returns their
 * number. claims may be NULL. */
static size_t check_claim_names(const redset_recovery *r, int set, claim *claims)
{
    size_t count = 0;
    for (int m = 0; m < r->shape.members; m++) {
        const redset_header *h = r->member[m].header;
        for (int d = 0; h && d <= r->shape.failures; d++)
            for (int i = 0; i < h->list[d].count; i++, count++)
                if (claims)
                    claims[count] = (claim){h->list[d].files[i].name, 0, h->list[d].rank};
        if (claims) claims[count] = (claim){r->member[m].name, 0, -1 - set};
        count++;
    }
    return count;
}

int redset_check_distinct_names(redset_recovery *const sets[], int count,
                                redset_error *err)
{
    size_t room = 0, n = 0;
    for (int i = 0; i < count; i++)
        room += check_claim_names(sets[i], i, NULL);
    claim *claims = calloc(room + 1, sizeof *claims);
    if (!claims) return err_sys(err, -ENOMEM, "%zu names", room);
    for (int i = 0; i < count; i++)
        n += check_claim_names(sets[i], i, claims + n);
    const claim *bad = claim_find_conflict(claims, n);
    int rc = 0;
    if (bad && strcmp(bad[0].name, bad[1].name) == 0)
        rc = err_set(
            err, -EINVAL,
            "one directory cannot hold the files of all ranks: two of them have %s",
            bad->name);
    else if (bad)
        rc = err_set(err, -EINVAL,
                     "one directory cannot hold the files of all ranks: %s and %s",
                     bad[0].name, bad[1].name);
    free(claims);
    return rc;
}
