/* SPDX-License-Identifier: BSD-3-Clause */
/* The order in which processes send each other files; see plan/bring.h. */
#include "plan/bring.h"

#include <errno.h>
#include <stdlib.h>

enum { BITS = 64 };

/* The rounds in which a process is busy, as bits. */
typedef struct bring_rounds {
    uint64_t *words;
    int count;
} bring_rounds;

/* A process that has the file from that round on. */
typedef struct bring_holder {
    int process, round;
} bring_holder;

static uint64_t bring_word(const bring_rounds *r, int i)
{
    return i < r->count ? r->words[i] : 0;
}

/* The first round, not before `from`, in which both processes are free. */
static int bring_find_free(const bring_rounds *a, const bring_rounds *b, int from)
{
    for (int i = from / BITS;; i++) {
        uint64_t busy = bring_word(a, i) | bring_word(b, i);
        if (i == from / BITS) busy |= ((uint64_t)1 << from % BITS) - 1;
        for (int bit = 0; ~busy && bit < BITS; bit++)
            if (!(busy >> bit & 1)) return i * BITS + bit;
    }
}

static int bring_occupy(bring_rounds *r, int round)
{
    while (round / BITS >= r->count) {
        uint64_t *words = realloc(r->words, ((size_t)r->count + 1) * sizeof *r->words);
        if (!words) return -ENOMEM;
        words[r->count++] = 0;
        r->words = words;
    }
    r->words[round / BITS] |= (uint64_t)1 << round % BITS;
    return 0;
}

static int bring_compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int bring_by_file(const void *x, const void *y)
{
    const scr_bring_want *a = x, *b = y;
    int order = bring_compare(a->file, b->file);
    return order ? order : a->to - b->to;
}

static int bring_by_round(const void *x, const void *y)
{
    const scr_bring_want *a = x, *b = y;
    return a->round != b->round ? a->round - b->round : a->to - b->to;
}

/* Plans the wants of one file. Holders wait in a queue: the first one sends next, and
 * then goes to the end of the queue, followed by the receiver. */
static int bring_spread(bring_rounds busy[], int count, scr_bring_want wants[],
                        bring_holder queue[])
{
    int first = 0, last = 1;
    queue[0] = (bring_holder){wants[0].holder, 0};
    for (int i = 0; i < count; i++) {
        scr_bring_want *w = &wants[i];
        const bring_holder from = queue[first++];
        w->from = from.process;
        w->round = bring_find_free(&busy[w->from], &busy[w->to], from.round);
        if (bring_occupy(&busy[w->from], w->round) != 0 ||
            bring_occupy(&busy[w->to], w->round) != 0)
            return -ENOMEM;
        queue[last++] = (bring_holder){from.process, w->round + 1};
        queue[last++] = (bring_holder){w->to, w->round + 1};
    }
    return 0;
}

int scr_plan_bring(int procs, int count, scr_bring_want wants[])
{
    bring_rounds *busy = calloc((size_t)procs, sizeof *busy);
    bring_holder *queue = calloc(2 * (size_t)count + 1, sizeof *queue);
    int rc = busy && queue ? 0 : -ENOMEM;
    if (!rc && count) qsort(wants, (size_t)count, sizeof *wants, bring_by_file);
    for (int i = 0, n; !rc && i < count; i += n) {
        for (n = 1; i + n < count && wants[i + n].file == wants[i].file;)
            n++;
        rc = bring_spread(busy, n, &wants[i], queue);
    }
    if (!rc && count) qsort(wants, (size_t)count, sizeof *wants, bring_by_round);
    for (int i = 0; busy && i < procs; i++)
        free(busy[i].words);
    free(busy);
    free(queue);
    return rc;
}
