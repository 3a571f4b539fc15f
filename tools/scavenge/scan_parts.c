/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that ranks wrote together and that are in a staging directory as parts; see
 * scan.h. */
#include "scavenge/scan.h"

#include "plan/part_name.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool scavenge_is_whole_file(const scavenge_file *f)
{
    uint64_t offset;
    return !f->redundancy && scr_part_parse(f->name, &offset) == 0;
}

/* ---- parts ---- */

static int parts_add(scavenge_scan *scan, const scavenge_file *f, int rank)
{
    filo_file part = {.name = (char *)(uintptr_t)f->name, .size = f->size};
    int rc = scr_part_place(&part);
    if (!rc && part.packed) {
        scan->parts[scan->part_count++] =
            (scavenge_shared_part){.at = *part.segment, .file = f, .rank = rank};
        scan->part_bytes += f->size;
    }
    free(part.segment);
    return rc;
}

/* Orders parts by file and offset. */
static int parts_compare(const void *a, const void *b)
{
    const scavenge_shared_part *x = a, *y = b;
    int order = strcmp(x->at.container, y->at.container);
    if (order) return order;
    if (x->at.offset != y->at.offset) return x->at.offset < y->at.offset ? -1 : 1;
    return (x->at.length > y->at.length) - (x->at.length < y->at.length);
}

static int parts_list(scavenge_scan *scan)
{
    size_t most = 0;
    int rc = 0;
    for (int i = 0; i < scan->count; i++)
        most += (size_t)scan->ranks[i]->count;
    scan->parts = calloc(most + 1, sizeof *scan->parts);
    scan->shared = calloc(most + 1, sizeof *scan->shared);
    if (!scan->parts || !scan->shared) return -ENOMEM;
    for (int i = 0; i < scan->count && !rc; i++)
        for (int k = 0; k < scan->ranks[i]->count && !rc; k++)
            if (!scan->ranks[i]->files[k].redundancy)
                rc = parts_add(scan, &scan->ranks[i]->files[k], scan->ranks[i]->rank);
    qsort(scan->parts, (size_t)scan->part_count, sizeof *scan->parts, parts_compare);
    return rc;
}

/* ---- shared files ---- */

/* Checks a shared file. The names of its parts are well-formed, but the file name and the
 * ranges in them may be invalid. */
static void parts_check(scavenge_scan *scan, const scavenge_shared *s)
{
    kvtree_error *why = &scan->conflict;
    uint64_t end = 0;
    scavenge_check_name(s->name, why);
    for (int i = 0; i < s->count && !why->text[0]; i++) {
        const scavenge_shared_part *p = &s->parts[i];
        if (p->at.offset < end)
            err_set(why, 0, "ranks %d and %d both have byte %" PRIu64 " of file %.200s",
                    s->parts[i - 1].rank, p->rank, p->at.offset, s->name);
        else if (p->at.length > INT64_MAX - p->at.offset)
            err_set(why, 0, "rank %d has too many bytes of file %.200s", p->rank,
                    s->name);
        end = p->at.offset + p->at.length;
    }
}

static int parts_compare_makers(const void *a, const void *b)
{
    const scavenge_shared *x = a, *y = b;
    return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank)
                              : strcmp(x->name, y->name);
}

int scavenge_scan_list_shared(scavenge_scan *scan)
{
    int rc = parts_list(scan);
    for (int i = 0, n; i < scan->part_count && !rc; i += n) {
        const scavenge_shared_part *first = &scan->parts[i];
        for (n = 1; i + n < scan->part_count &&
                    strcmp(first[n].at.container, first->at.container) == 0;)
            n++;
        const filo_segment *last = &first[n - 1].at;
        scan->shared[scan->shared_count++] =
            (scavenge_shared){.name = first->at.container,
                              .size = last->offset + last->length,
                              .rank = first->rank,
                              .count = n,
                              .parts = first};
        parts_check(scan, &scan->shared[scan->shared_count - 1]);
    }
    if (!rc)
        qsort(scan->shared, (size_t)scan->shared_count, sizeof *scan->shared,
              parts_compare_makers);
    return rc;
}

void scavenge_scan_drop_shared(scavenge_scan *scan)
{
    for (int i = 0; i < scan->part_count; i++)
        free(scan->parts[i].at.container);
    free(scan->parts);
    free(scan->shared);
    scan->parts = NULL;
    scan->shared = NULL;
    scan->part_count = scan->shared_count = 0;
    scan->part_bytes = 0;
}
