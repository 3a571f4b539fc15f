/* SPDX-License-Identifier: BSD-3-Clause */
/* Work in threads; see side.h. */
#include "scavenge/side.h"

#include <pthread.h>
#include <stdatomic.h>

enum { MOST = 64 };

typedef struct crew {
    atomic_int next;
    int count;
    void (*work)(void *arg, int i);
    void *arg;
} crew;

static void *take_turns(void *of)
{
    crew *c = of;
    for (int i; (i = atomic_fetch_add(&c->next, 1)) < c->count;)
        c->work(c->arg, i);
    return NULL;
}

void scavenge_side_by_side(int count, int most, void (*work)(void *arg, int i), void *arg)
{
    pthread_t thread[MOST];
    crew c = {.count = count, .work = work, .arg = arg};
    int others = 0;
    if (most > MOST) most = MOST;
    if (most > count) most = count;
    while (others + 1 < most &&
           pthread_create(&thread[others], NULL, take_turns, &c) == 0)
        others++;
    take_turns(&c);
    while (others > 0)
        pthread_join(thread[--others], NULL);
}
