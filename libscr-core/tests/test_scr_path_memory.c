/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths without memory: each function that needs some is run with its first allocation
 * failing, then its second, and so on until none fails. It returns NULL and leaks
 * nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/path.h"
#include "nth_malloc.h"
#include <cmocka.h>
#include <stdbool.h>

static char *do_reduce(void)
{
    return scr_path_reduce("/a/./b");
}

static char *do_absolute(void)
{
    return scr_path_absolute("/a", "b");
}

static char *do_join(void)
{
    return scr_path_join("/a", "b");
}

/* Returns the number of allocations that work needs. (Printing to memory succeeds with
 * less than it asks for.) */
static int fail_each(char *(*work)(void))
{
    for (int n = 1, needed = 0;; n++) {
        long before = live;
        countdown = n;
        char *path = work();
        int left = countdown;
        bool worked = path;
        countdown = 0;
        free(path);
        assert_int_equal(live, before);
        assert_true(worked || !left);
        if (left) return needed;
        needed += !worked;
    }
}

static void each_allocation_may_fail(void **state)
{
    assert_int_equal(fail_each(do_reduce), 1);
    assert_true(fail_each(do_absolute) >= 2);
    assert_true(fail_each(do_join) >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
