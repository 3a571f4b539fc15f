/* SPDX-License-Identifier: BSD-3-Clause */
/* Launchers in place of a program, and the suggested command line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "run/program_check.h"
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 24 };

/* Splits a line into the words between its blanks; changes text. */
static void split(char *text, const char *words[MOST])
{
    int n = 0;
    for (char *word; (word = strsep(&text, " ")) != NULL && n < MOST - 1;)
        words[n++] = word;
    words[n] = NULL;
}

static bool is_launcher(const char *line)
{
    const char *words[MOST];
    char *text = strdup(line);
    split(text, words);
    bool is = program_is_launcher(words);
    free(text);
    return is;
}

static void test_launchers(void **state)
{
    static const char *const launchers[] = {"mpirun",           "mpirun -n 2 p",
                                            "/usr/bin/mpiexec", "mpiexec.hydra -n 2 p",
                                            "srun -n4 p",       "aprun p",
                                            "./jsrun",          "lrun",
                                            "orterun",          "prun",
                                            "ibrun p",          "flux run -n 2 p",
                                            "prterun",          "/a/flux mini run p",
                                            "scr_srun -n2 p",   "mpiexec.openmpi"};
    static const char *const programs[] = {
        "./heat",     "heat mpirun", "./flux",        "flux 12 run",
        "srun.sh",    "mpirun/heat", "my_mpirun",     "./heat -n 2 srun",
        "env mpirun", "flux mini",   "/x/mpirun/heat"};
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if (!is_launcher(launchers[i])) fail_msg("%s", launchers[i]);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        if (is_launcher(programs[i])) fail_msg("%s", programs[i]);
}

static const struct {
    const char *own, *words, *advice;
} advised[] = {
    {"scr_run --simulate 3x1", "mpirun -n 2 program",
     "scr_run --simulate 3x1 PROGRAM ..."},
    {"scr_run --runs 3", "srun -n4 --exclusive -N 2 ./p x",
     "scr_run --runs 3 PROGRAM ..."},
    {"scr_run", "flux run -n 8 ./p", "scr_run PROGRAM ..."},
    {"scr_run", "mpirun.openmpi -n 8 ./p", "scr_run PROGRAM ..."},
    /* commands that take the same arguments */
    {"scr_run", "srun -n4 --odd x ./p", "scr_srun -n4 --odd x ./p"},
    {"scr_run", "mpirun -n 4 ./p", "scr_mpirun -n 4 ./p"},
    {"scr_run", "mpirun", "scr_run PROGRAM ..."},
    {"scr_test_system", "mpirun -n 4 ./p", "scr_test_system PROGRAM ..."},
};

static void test_advice(void **state)
{
    for (size_t i = 0; i < sizeof advised / sizeof *advised; i++) {
        const char *own[MOST], *words[MOST];
        char *first = strdup(advised[i].own), *second = strdup(advised[i].words);
        tool_words line = {0}, text = {0};
        split(first, own);
        split(second, words);
        program_advise(own, words, &line);
        assert_false(line.failed);
        tool_words_add_quoted(&text, tool_words_list(&line));
        assert_false(text.failed);
        assert_string_equal(text.list[0], advised[i].advice);
        tool_words_done(&line);
        tool_words_done(&text);
        free(first);
        free(second);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_launchers),
                                       cmocka_unit_test(test_advice)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
