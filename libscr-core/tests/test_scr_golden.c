/* SPDX-License-Identifier: BSD-3-Clause */
/* Files in both forms that say the same, and what they say: golden/NAME.scrconf,
 * NAME.yaml, NAME.txt. */
#include "records.h"

#include "configs.h"

static char *read_text(const char *path)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "r");
    if (!file || getdelim(&text, &size, 0, file) < 0) fail_msg("%s cannot be read", path);
    fclose(file);
    return text;
}

static void put_answer(FILE *out, const struct conf *c, const char *question)
{
    char *answer = scr_descs_answer(&c->descs, question);
    fprintf(out, "%s: %s\n", question, answer ? answer : "none");
    free(answer);
}

/* Every key of a kind with the answers to its fields. */
static void put_kind(FILE *out, const struct conf *c, scr_desc_kind kind)
{
    const char *name = scr_desc_kind_name(kind);
    char *keys = scr_descs_answer(&c->descs, name), *rest = keys, *key, question[256];
    while ((key = strsep(&rest, "\n")) && *key) {
        for (const scr_desc_field *f = scr_desc_field_table; f->name; f++) {
            if (f->kind != kind) continue;
            snprintf(question, sizeof question, "%s=%s %s", name, key, f->name);
            put_answer(out, c, question);
        }
        const kvtree_elem *e = kvtree_elem_first(c->descs.groups.names);
        for (; e && kind == SCR_DESC_GROUPS; e = kvtree_elem_next(e)) {
            snprintf(question, sizeof question, "%s=%s %s", name, key,
                     kvtree_elem_key(e));
            put_answer(out, c, question);
        }
    }
    free(keys);
}

/* All that the file says; to be freed. */
static char *all_of(const char *path)
{
    struct conf c;
    char *file = read_text(path), *text = NULL;
    size_t size;
    conf_of(&c, file);
    FILE *out = open_memstream(&text, &size);
    for (const scr_param *p = scr_param_table; p->name; p++) {
        const char *value = kvtree_get_val(kvtree_get(c.config.user, p->name), "VALUE");
        if (value) fprintf(out, "%s: %s\n", p->name, value);
    }
    for (int kind = 0; kind < SCR_DESC_KINDS; kind++)
        put_kind(out, &c, (scr_desc_kind)kind);
    fclose(out);
    conf_done(&c);
    free(file);
    return text;
}

static void files_say_what_they_said(void **state)
{
    static const char *const names[] = {"guide", "implied"};
    static const char *const forms[] = {"scrconf", "yaml"};
    setenv("SCR_TEST_WORD", "word", 1);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/golden/%s.txt", SCR_TESTS, names[i]);
        char *wanted = read_text(path);
        for (int form = 0; form < 2; form++) {
            snprintf(path, sizeof path, "%s/golden/%s.%s", SCR_TESTS, names[i],
                     forms[form]);
            char *is = all_of(path);
            assert_string_equal(is, wanted);
            free(is);
        }
        free(wanted);
    }
}

/* With the name of a file it prints what that says. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_say_what_they_said),
    };
    setenv("SCR_TEST_WORD", "word", 1);
    if (argc == 2) {
        char *text = all_of(argv[1]);
        fputs(text, stdout);
        free(text);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
