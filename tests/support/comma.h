/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_COMMA_H
#define TESTS_COMMA_H

/* Tests with a locale that writes numbers with a decimal comma: this must not change what
 * SCR reads and writes. For tests with cmocka. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

/* Makes a locale with a decimal comma, which few systems provide, and uses it for
 * numbers; 0 if the sources of locales are missing (Debian: package locales). */
static inline int use_decimal_comma(void)
{
    char folder[] = "/tmp/scr-test-XXXXXX", command[160];
    assert_non_null(mkdtemp(folder));
    snprintf(command, sizeof command,
             "localedef --no-archive -i de_DE -f UTF-8 %s/comma >%s/said 2>&1", folder,
             folder);
    int made = system(command) == 0;
    setenv("LOCPATH", folder, 1);
    int used = setlocale(LC_NUMERIC, "comma") != NULL;
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    assert_int_equal(made, used);
    if (used) {
        char comma[16];
        snprintf(comma, sizeof comma, "%.1f", 0.5);
        assert_string_equal(comma, "0,5");
    }
    return used;
}

#endif
