/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_NTH_EACH_H
#define TESTS_NTH_EACH_H

/* Work, without MPI, that lacks memory at each of its allocations: it returns -ENOMEM or
 * does without, leaks no block and no descriptor, and succeeds when it is tried again.
 * For cmocka programs; see nth_malloc.h. */

#include "nth_malloc.h"
#include <cmocka.h>

enum { NTH_TRIES = 400 };

/* least: the minimum number of allocations; fewer indicate a mistake in the test. tries:
 * the number of allocations that fail, spread over all; with NTH_ALL, each one fails. */
static inline void nth_some(const char *name, nth_try *work, void *arg, int least,
                            int tries)
{
    int fired = 1, failed = 0, all = nth_count(work, arg);
    int stride = nth_stride(all, tries);
    assert_true(all >= least);
    if (nth_again(work, arg) != 0) fail_msg("%s: %s", name, nth_text.text);
    for (int n = 1; fired; n += stride) {
        long blocks = live;
        int descriptors = nth_descriptors();
        int rc = nth_without(work, arg, n, &fired);
        if ((rc != 0 && rc != -ENOMEM) || (rc && !fired) || live != blocks ||
            nth_descriptors() != descriptors)
            print_error("%s: allocation %d of %d: %d, %ld blocks more: %s\n", name, n,
                        all, rc, live - blocks, rc ? nth_text.text : "");
        assert_true(rc == 0 || (rc == -ENOMEM && fired));
        assert_int_equal(live, blocks);
        assert_int_equal(nth_descriptors(), descriptors);
        failed += rc != 0;
        if (rc) assert_int_equal(nth_again(work, arg), 0);
    }
    print_message("%s: %d allocations, every %d. failed, %d errors\n", name, all, stride,
                  failed);
    assert_true(failed > 0);
}

static inline void nth_each(const char *name, nth_try *work, void *arg, int least)
{
    nth_some(name, work, arg, least, NTH_TRIES);
}

#endif
