/* SPDX-License-Identifier: BSD-3-Clause */
/* Output of scr_doctor for facts that differ from this machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "doctor/doctor.h"
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#define GB 1000000000LL

static doctor_facts good(void)
{
    return (doctor_facts){.is_exclusive = true,
                          .prefix_free = 100 * GB,
                          .cache_free = 10 * GB,
                          .wanted = GB,
                          .in_memory = true,
                          .memory = 64 * GB,
                          .limit = -1,
                          .shared = 32 * GB,
                          .files = 1024};
}

/* Expects that only one row is not good, with that mark, message and text. */
static void expect(const doctor_facts *f, const char *check, tool_mark mark,
                   const char *identifier, const char *text)
{
    doctor_row rows[DOCTOR_ROWS];
    int count = doctor_judge(f, rows), found = 0;
    assert_in_range(count, 1, DOCTOR_ROWS);
    for (int i = 0; i < count; i++) {
        if (rows[i].mark == TOOL_GOOD) {
            assert_int_equal(rows[i].message, -1);
            continue;
        }
        found++;
        assert_string_equal(rows[i].check, check);
        assert_int_equal(rows[i].mark, mark);
        assert_string_equal(tool_messages[rows[i].message].identifier, identifier);
        assert_non_null(strstr(rows[i].text, text));
    }
    assert_int_equal(found, check ? 1 : 0);
}

static void each_fact(void **state)
{
    (void)state;
    doctor_facts f = good();
    expect(&f, NULL, TOOL_GOOD, NULL, NULL);
    f.write = -EROFS;
    expect(&f, "writing", TOOL_BAD, "DIRECTORY_UNUSABLE", "Read-only");
    f = good();
    f.lock = -ENOLCK;
    expect(&f, "locks", TOOL_WARN, "SITE_LOCKS_MISSING", "No locks available");
    f = good();
    f.is_exclusive = false;
    expect(&f, "locks", TOOL_WARN, "SITE_LOCKS_MISSING", "two processes");
    f = good();
    f.clock = -120;
    expect(&f, "clock", TOOL_WARN, "SITE_CLOCK_DIFFERS", "120 s behind");
    f.clock = 3;
    expect(&f, "clock", TOOL_WARN, "SITE_CLOCK_DIFFERS", "3 s ahead");
    f.clock = 1.5;
    expect(&f, NULL, TOOL_GOOD, NULL, NULL);
    f.prefix_free = GB - 1;
    expect(&f, "space", TOOL_WARN, "SITE_SPACE_LOW", "less than 1.0 GB");
    f = good();
    f.cache_free = -1;
    expect(&f, "cache", TOOL_WARN, "SITE_SPACE_LOW", "not known");
}

static void limits(void **state)
{
    (void)state;
    doctor_facts f = good();
    f.limit = 4 * GB;
    expect(&f, "memory", TOOL_WARN, "SITE_MEMORY_SMALL", "10.0 GB, but 4.0 GB");
    f.in_memory = false;
    expect(&f, NULL, TOOL_GOOD, NULL, NULL);
    f = good();
    f.memory = 8 * GB;
    f.limit = INT64_MAX;
    expect(&f, "memory", TOOL_WARN, "SITE_MEMORY_SMALL", "8.0 GB");
    f = good();
    f.shared = 64 << 20;
    expect(&f, "/dev/shm", TOOL_WARN, "SITE_MEMORY_SMALL", "67.1 MB");
    f.shared = -1;
    expect(&f, "/dev/shm", TOOL_WARN, "SITE_MEMORY_SMALL", "missing");
    f = good();
    f.files = 256;
    expect(&f, "open files", TOOL_WARN, "SITE_FILES_FEW", "256");
}

static void remedies(void **state)
{
    (void)state;
    int message = doctor_message("SITE_SPACE_LOW");
    assert_string_equal(tool_messages[message].identifier, "SITE_SPACE_LOW");
    assert_non_null(strstr(doctor_remedy(message), "SCR_PREFIX_SIZE"));
    assert_int_equal(doctor_message("NO_SUCH"), -1);
    assert_null(doctor_remedy(-1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_fact),
                                       cmocka_unit_test(limits),
                                       cmocka_unit_test(remedies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
