/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts of errors (common/errtext.h): names as long as a file system allows do not push
 * out the reason behind them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "common/errtext.h"
#include "common/utf8.h"
#include <cmocka.h>
#include <errno.h>
#include <string.h>

enum { ROOM = sizeof(kvtree_error) - 1, LONG = 3000 };

static bool ends_with(const char *text, const char *end)
{
    return strlen(text) >= strlen(end) &&
           strcmp(text + strlen(text) - strlen(end), end) == 0;
}

static void check_characters(const char *text)
{
    uint32_t character;
    for (size_t n; *text; text += n)
        assert_int_not_equal(n = utf8_length(text, &character), 0);
}

static void texts_that_fit_are_whole(void **state)
{
    char name[ROOM + 1];
    kvtree_error err;
    memset(name, 'n', ROOM);
    name[ROOM] = 0;
    assert_int_equal(err_set(&err, -EIO, "%s", name), -EIO);
    assert_string_equal(err.text, name);
    err_sys(&err, -ENOSPC, "write a\nb");
    assert_string_equal(err.text, "write a?b: No space left on device");
    err_wrap(&err, 0, "rank 3");
    assert_string_equal(err.text, "rank 3: write a?b: No space left on device");
}

/* Names of every length around the limit, of characters of one and of two bytes. */
static void reasons_stay(void **state)
{
    static const char *const characters[] = {"n", "\xc3\xbc"};
    for (int c = 0; c < 2; c++) {
        const char *character = characters[c];
        char name[LONG + 3] = "";
        for (size_t length = 0; length < LONG; length += strlen(character)) {
            kvtree_error err = {""};
            strcpy(name + length, character);
            err_sys(&err, -ENAMETOOLONG, "stat %s", name);
            assert_true(ends_with(err.text, ": File name too long"));
            err_wrap(&err, 0, "dataset %s", name);
            err_wrap(&err, 0, "on %d ranks, first rank %d", 1000, 999);
            assert_true(ends_with(err.text, ": File name too long"));
            assert_ptr_equal(strstr(err.text, "on 1000 ranks, first rank 999: dataset "),
                             err.text);
            check_characters(err.text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts_that_fit_are_whole),
                                       cmocka_unit_test(reasons_stay)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
