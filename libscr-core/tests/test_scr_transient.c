/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors that may not occur the next time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/transient.h"

#include <cmocka.h>
#include <errno.h>

static void transient_errors(void **state)
{
    const int transient[] = {-EIO, -ENOMEM, -EMFILE, -ENFILE, -EINTR, -EAGAIN, -ESTALE};
    const int lasting[] = {0, -ENOENT, -EBADMSG, -ENOTDIR, -ELOOP, -EINVAL, EIO, 1};
    for (size_t i = 0; i < sizeof transient / sizeof *transient; i++)
        assert_true(scr_is_transient(transient[i]));
    for (size_t i = 0; i < sizeof lasting / sizeof *lasting; i++)
        assert_false(scr_is_transient(lasting[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transient_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
