/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of signals in SCR_HALT_SIGNALS. */
#include "config/signals.h"
#include "records.h"
#include <errno.h>
#include <signal.h>

/* The set of the given signals; a 0 ends them. */
static unsigned set_of(const int *numbers)
{
    unsigned set = 0;
    for (; *numbers; numbers++)
        for (int i = 0; i < SCR_SIGNALS; i++)
            if (scr_signal_names[i].number == *numbers) set |= 1u << i;
    return set;
}

static void lists(void **state)
{
    static const struct {
        const char *text;
        int numbers[4];
    } cases[] = {{"TERM,USR1", {SIGTERM, SIGUSR1}},
                 {"sigterm usr1", {SIGTERM, SIGUSR1}},
                 {" SIGUSR2,, term , ", {SIGUSR2, SIGTERM}},
                 {"HUP,INT,XCPU", {SIGHUP, SIGINT, SIGXCPU}},
                 {"QUIT QUIT", {SIGQUIT}},
                 {"none", {0}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned set = 77;
        assert_int_equal(scr_signals_parse(cases[i].text, &set), 0);
        assert_int_equal(set, set_of(cases[i].numbers));
    }
}

static void mistakes(void **state)
{
    static const char *const texts[] = {"",    ",",         "KILL",  "TERM,STOP",
                                        "15",  "TER",       "TERMS", "TERM;HUP",
                                        "SIG", "NONE,TERM", "USR",   "SIGSIGTERM"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        unsigned set = 77;
        if (scr_signals_parse(texts[i], &set) != -EINVAL)
            fail_msg("\"%s\" was accepted", texts[i]);
        assert_int_equal(set, 77);
    }
}

static void names(void **state)
{
    assert_string_equal(scr_signal_text(SIGTERM), "TERM");
    assert_string_equal(scr_signal_text(SIGXCPU), "XCPU");
    assert_string_equal(scr_signal_text(SIGKILL), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists), cmocka_unit_test(mistakes), cmocka_unit_test(names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
