/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for the bytes of files starts at a page boundary. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "common/io.h"
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

static void a_buffer_begins_at_a_page(void **state)
{
    const size_t sizes[] = {0, 1, PAGE - 1, PAGE, PAGE + 1, 512 * 1024, 1024 * 1024};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char *buffer = io_buffer(sizes[i]);
        assert_non_null(buffer);
        assert_int_equal((uintptr_t)buffer % PAGE, 0);
        memset(buffer, 1, sizes[i]);
        free(buffer);
    }
}

static void more_than_there_can_be(void **state)
{
    for (size_t less = 0; less < PAGE; less++)
        assert_null(io_buffer(SIZE_MAX - less));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_buffer_begins_at_a_page),
                                       cmocka_unit_test(more_than_there_can_be)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
