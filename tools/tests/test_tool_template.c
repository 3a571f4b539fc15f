/* SPDX-License-Identifier: BSD-3-Clause */
/* Templates of command lines: their words, and mistakes in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "common/io.h"
#include "lib/tool_template.h"
#include "run/launcher.h"
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"n1", "n2", "n3"};
static const char *const program[] = {"./prog", "a b", NULL};
static const tool_value values[] = {{.name = "ranks", .text = "6"},
                                    {.name = "hosts", .text = "n1,n2,n3"},
                                    {.name = "patience"},
                                    {.name = "host", .list = names, .count = 3},
                                    {.name = "none", .list = names},
                                    {.name = "command", .words = program},
                                    {.name = NULL}};

static void expect(const char *text, const char *wanted)
{
    tool_words words = {0};
    kvtree_error err = {""};
    char all[512] = "";
    if (tool_template_check(text, values, &err) != 0) fail_msg("%s: %s", text, err.text);
    if (tool_template_expand(text, values, &words, &err) != 0)
        fail_msg("%s: %s", text, err.text);
    for (int i = 0; i < words.count; i++) {
        strcat(all, i ? "|" : "");
        strcat(all, words.list[i]);
    }
    assert_string_equal(all, wanted);
    tool_words_done(&words);
}

static void words_and_values(void **state)
{
    expect("run", "run|./prog|a b");
    expect("  run   -n {ranks}  --on={hosts} ", "run|-n|6|--on=n1,n2,n3|./prog|a b");
    expect("env {command} last", "env|./prog|a b|last");
    expect("a'{ranks} [x]'b 'c d'", "a{ranks} [x]b|c d|./prog|a b");
    expect("x:y-z=1", "x:y-z=1|./prog|a b");
}

static void optional_groups(void **state)
{
    expect("run [-n {ranks}] [-t {patience}]", "run|-n|6|./prog|a b");
    expect("run [-t {patience}|-n {ranks} x]", "run|-n|6|x|./prog|a b");
    expect("run [-n {ranks}|-t {patience}]", "run|-n|6|./prog|a b");
    expect("run [-t {patience}|-u {patience}|-z]", "run|-z|./prog|a b");
    expect("run [a [-t {patience}] b {ranks}]", "run|a|b|6|./prog|a b");
    expect("run [a [-t {patience}|z] b]", "run|a|z|b|./prog|a b");
    expect("run [--over{ranks?}] [--no{patience?}]", "run|--over|./prog|a b");
}

static void repeated_groups(void **state)
{
    expect("run (-x {host})", "run|-x|n1|-x|n2|-x|n3|./prog|a b");
    expect("run (-h {host} {command}|:)",
           "run|-h|n1|./prog|a b|:|-h|n2|./prog|a b|:|-h|n3|./prog|a b");
    expect("run (-x {none})", "run|./prog|a b");
    expect("run ({host} [-t {patience}])", "run|n1|n2|n3|./prog|a b");
}

static void mistakes(void **state)
{
    static const char *const wrong[][2] = {
        {"", "it is empty"},
        {"run {rank}", "unknown value {rank}; did you mean {ranks}?"},
        {"run {ranks", "{ without its end"},
        {"run ranks}", "} in no group"},
        {"run 'x", "' without its end"},
        {"run [x", "[ without its end"},
        {"run x]", "] without its beginning"},
        {"run [x)", ") without its beginning"},
        {"run a|b", "| in no group"},
        {"run --x[={ranks}]", "a group must have whole words"},
        {"run [x]y", "a group must have whole words"},
        {"run (x {ranks})", "has no list"},
        {"run {host}", "{host} is a list"},
        {"run [[[[[[[[[x]]]]]]]]]", "nested too deeply"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        kvtree_error err = {""};
        assert_int_equal(tool_template_check(wrong[i][0], values, &err), -EINVAL);
        if (!strstr(err.text, wrong[i][1])) fail_msg("%s: %s", wrong[i][0], err.text);
    }
}

static void missing_value(void **state)
{
    tool_words words = {0};
    kvtree_error err = {""};
    assert_int_equal(tool_template_expand("run -t {patience}", values, &words, &err),
                     -EINVAL);
    assert_non_null(strstr(err.text, "{patience} has no value"));
    tool_words_done(&words);
}

static void first_word(void **state)
{
    char *word = tool_template_program("  '/opt/a b/run' -n {ranks}");
    assert_string_equal(word, "/opt/a b/run");
    free(word);
}

/* Every template in the table of launchers is valid. */
static void built_in(void **state)
{
    launcher_values known;
    assert_int_equal(launcher_values_make(NULL, NULL, &known), 0);
    for (const launcher *l = launcher_table; l->name; l++) {
        const char *texts[] = {l->run,    l->raw,    l->simulate, l->find,
                               l->end[0], l->end[1], l->end[2],   l->end[3]};
        assert_true(l->run && l->raw);
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            kvtree_error err = {""};
            if (texts[i] && tool_template_check(texts[i], known.list, &err) != 0)
                fail_msg("%s: %s: %s", l->name, texts[i], err.text);
        }
    }
    launcher_values_free(&known);
}

static ssize_t refuse(void *cookie, const char *bytes, size_t size)
{
    (void)cookie;
    (void)bytes;
    (void)size;
    errno = ENOMEM;
    return 0;
}

/* Like open_memstream without memory: the written text is lost, and closing succeeds. */
static void text_that_is_cut(void **state)
{
    const cookie_io_functions_t calls = {.write = refuse};
    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        char *text = NULL;
        size_t size;
        FILE *out = fails ? fopencookie(NULL, "w", calls) : open_memstream(&text, &size);
        assert_non_null(out);
        if (fails) text = strdup("cut");
        fputs("whole", out);
        fflush(out);
        char *got = io_text_end(out, &text);
        assert_true(fails ? !got && !text : strcmp(got, "whole") == 0);
        free(got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_and_values), cmocka_unit_test(optional_groups),
        cmocka_unit_test(repeated_groups),  cmocka_unit_test(mistakes),
        cmocka_unit_test(missing_value),    cmocka_unit_test(first_word),
        cmocka_unit_test(built_in),         cmocka_unit_test(text_that_is_cut)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
