/* SPDX-License-Identifier: BSD-3-Clause */
/* A parallel loop; see parallel_for.h. */
#include "scavenge/parallel_for.h"

#include <pthread.h>
#include <stdatomic.h>

enum { MOST_THREADS = 64 };

typedef struct parallel_loop {
    atomic_int next;
    int count;
    void (*work)(void *arg, int i);
    void *arg;
} parallel_loop;

static void *parallel_loop_run(void *loop)
{
    parallel_loop *l = loop;
    for (int i; (i = atomic_fetch_add(&l->next, 1)) < l->count;)
        l->work(l->arg, i);
    return NULL;
}

void scavenge_parallel_for(int count, int width, void (*work)(void *arg, int i),
                           void *arg)
{
    pthread_t thread[MOST_THREADS];
    parallel_loop l = {.count = count, .work = work, .arg = arg};
    int others = 0;
    if (width > count) width = count;
    while (others + 1 < width && others < MOST_THREADS &&
           pthread_create(&thread[others], NULL, parallel_loop_run, &l) == 0)
        others++;
    parallel_loop_run(&l);
    while (others > 0)
        pthread_join(thread[--others], NULL);
}
