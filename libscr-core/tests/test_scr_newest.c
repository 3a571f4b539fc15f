/* SPDX-License-Identifier: BSD-3-Clause */
/* The newest cached checkpoint, for every small cache. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/newest.h"

#include <cmocka.h>

/* 1 if a is the newest checkpoint: nothing newer of that kind is there. */
static int is_newest(const scr_cached *c, int count, int a)
{
    if (c[a].ckpt <= 0) return 0;
    for (int i = 0; i < count; i++)
        if (c[i].ckpt > 0 && c[i].id > c[a].id) return 0;
    return 1;
}

static int expected_newest(const scr_cached *c, int count)
{
    for (int i = 0; i < count; i++)
        if (is_newest(c, count, i)) return i;
    return -1;
}

static void check_cache(const scr_cached *c, int count)
{
    assert_int_equal(scr_plan_newest(c, count), expected_newest(c, count));
}

/* All orders of ids, with all flags for each dataset: each position takes an id that is
 * not yet used. */
static int every_cache(scr_cached *c, int count, int at, unsigned used)
{
    int checked = 0;
    if (at == count) {
        check_cache(c, count);
        return 1;
    }
    for (int id = 1; id <= count; id++) {
        if (used & 1u << id) continue;
        for (int flags = 0; flags < 8; flags++) {
            c[at] = (scr_cached){.id = id * 3,
                                 .ckpt = flags & 1 ? id * 2 : 0,
                                 .flushing = flags >> 1 & 1,
                                 .output = flags >> 2};
            checked += every_cache(c, count, at + 1, used | 1u << id);
        }
    }
    return checked;
}

static void every_small_cache(void **state)
{
    static const int orders[] = {1, 1, 2, 6, 24};
    scr_cached cached[4] = {{.id = 0}};
    for (int count = 0, flags = 1; count <= 4; count++, flags *= 8)
        assert_int_equal(every_cache(cached, count, 0, 0), orders[count] * flags);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_small_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
