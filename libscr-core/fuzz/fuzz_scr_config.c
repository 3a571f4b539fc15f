/* SPDX-License-Identifier: BSD-3-Clause */
/* Any bytes as a configuration file, and as a text for SCR_Config.
 *
 * An independent reader, written from docs/configuration.md, accepts the same files of
 * lines and gets the same values. A file without mistakes, of either form, can be written
 * in both forms and read back unchanged. From a file with mistakes the valid entries are
 * used, the problems contain no control characters, and there is always a usable
 * descriptor. */
#include "config/config_file.h"
#include "config/descs.h"
#include "config/reader.h"
#include "fuzz.h"
#include "fuzz_lines.h"
#include "tests/values.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reading lines may allocate this number of bytes in total per byte of input, plus a
 * constant. The worst case is descriptors with one-letter names, each with six elements
 * of trees. */
#define READ_BYTES_PER_BYTE 400
#define READ_BYTES_MORE 65536

/* ---- files of lines, from docs/configuration.md ---- */

struct word {
    const char *at, *end; /* the rest of the line */
};

static void skip_blanks(struct word *w)
{
    while (w->at < w->end && (*w->at == ' ' || *w->at == '\t'))
        w->at++;
}

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool put_variable(const char *name, size_t n, FILE *out)
{
    char copy[4100] = "";
    memcpy(copy, name, n);
    const char *value = getenv(copy);
    if (value) fputs(value, out);
    return value != NULL;
}

/* Returns the text with its variables expanded; NULL if one is not set, or has an invalid
 * name in braces. */
static char *with_variables(const char *text, const char *end)
{
    char *out = NULL;
    size_t size;
    bool good = true;
    FILE *stream = open_memstream(&out, &size);
    while (text < end) {
        bool brace = text + 1 < end && text[1] == '{';
        const char *name = text + 1 + brace, *stop = name;
        while (stop < end && is_name_char(*stop))
            stop++;
        bool is_one =
            *text == '$' && stop > name && (!brace || (stop < end && *stop == '}'));
        if (!is_one) {
            good = good && !(*text == '$' && brace);
            fputc(*text++, stream);
            continue;
        }
        good = put_variable(name, (size_t)(stop - name), stream) && good;
        text = stop + brace;
    }
    fclose(stream);
    if (good) return out;
    free(out);
    return NULL;
}

/* Reads the next NAME=value. Returns 1, 0 at the end of the line, -1 for a mistake. */
static int next_pair(struct word *w, char **name, char **value)
{
    *name = *value = NULL;
    skip_blanks(w);
    if (w->at == w->end || *w->at == '#') return 0;
    const char *begin = w->at;
    while (w->at < w->end && !strchr("= \t", *w->at))
        w->at++;
    *name = strndup(begin, (size_t)(w->at - begin));
    skip_blanks(w);
    if (!**name || w->at == w->end || *w->at != '=') return -1;
    w->at++;
    skip_blanks(w);
    if (w->at == w->end || *w->at == '#') return -1;
    char quote = *w->at == '"' || *w->at == '\'' ? *w->at++ : 0;
    begin = w->at;
    while (w->at < w->end && (quote ? *w->at != quote : !strchr(" \t", *w->at)))
        w->at++;
    if (quote && w->at == w->end) return -1;
    *value = with_variables(begin, w->at);
    if (quote && ++w->at < w->end && !strchr(" \t", *w->at)) return -1;
    return *value && **value ? 1 : -1;
}

static bool is_text(const char *text)
{
    size_t n = strlen(text);
    for (const char *c = text; *c; c++)
        if (iscntrl((unsigned char)*c)) return false;
    return n > 0 && n < 256;
}

/* Reduces a path component by component. */
static bool reduce_path(const char *text, char *key)
{
    size_t length = 0;
    if (text[0] != '/') return false;
    for (const char *c = text; *c; c++)
        if (iscntrl((unsigned char)*c)) return false;
    while (*text) {
        size_t n = strcspn(text, "/");
        if (n == 2 && strncmp(text, "..", 2) == 0) {
            while (length > 0 && key[--length] != '/') {
            }
        } else if (n > 0 && !(n == 1 && *text == '.')) {
            key[length++] = '/';
            memcpy(key + length, text, n);
            length += n;
        }
        text += n + (text[n] == '/');
    }
    if (length == 0) key[length++] = '/';
    key[length] = 0;
    return length < 1024;
}

static bool reduce_number(const char *text, char *key)
{
    bool minus = *text == '-';
    unsigned value = 0;
    text += minus || *text == '+';
    if (!*text) return false;
    for (; *text; text++) {
        if (!isdigit((unsigned char)*text)) return false;
        value = value * 10 + (unsigned)(*text - '0');
        if (value > 999) return false;
    }
    sprintf(key, "%u", value);
    return !minus || value == 0;
}

static const char *field_name(const char *kind, const char *name)
{
    static const char *const store[] = {"GROUP", "COUNT", "ENABLED", "CAPACITY",
                                        "MKDIR", "TYPE",  "VIEW"};
    static const char *const ckpt[] = {"INTERVAL", "TYPE",     "GROUP",
                                       "STORE",    "SET_SIZE", "SET_FAILURES",
                                       "ENABLED",  "OUTPUT",   "BYPASS"};
    static const char *const launcher[] = {"RUN", "ARGUMENTS", "MANAGER", "FIND", "END"};
    bool is_store = strcmp(kind, "STORE") == 0,
         is_launcher = strcmp(kind, "LAUNCHER") == 0;
    if (strcmp(kind, "GROUPS") == 0)
        return strcmp(name, "NODE") == 0 || strcmp(name, "WORLD") == 0 || !is_text(name)
                   ? NULL
                   : name;
    if (is_store && strcmp(name, "FLUSH") == 0) name = "TYPE";
    const char *const *names = is_store ? store : is_launcher ? launcher : ckpt;
    for (size_t i = 0; i < (is_store ? 7u : is_launcher ? 5u : 9u); i++)
        if (strcmp(names[i], name) == 0) return name;
    return NULL;
}

static bool model_fields(struct word *w, const char *kind, kvtree *fields)
{
    char *name, *value;
    bool good = true;
    int rc;
    while ((rc = next_pair(w, &name, &value)) > 0) {
        const char *field = field_name(kind, name);
        if (!field || kvtree_get(fields, field) ||
            (strcmp(kind, "GROUPS") == 0 && !is_text(value)))
            good = false;
        else
            kvtree_setf(fields, NULL, "%s VALUE %s", field, value);
        free(name);
        free(value);
    }
    free(name);
    free(value);
    return good && rc == 0;
}

static bool model_desc(struct word *w, const char *kind, const char *text, kvtree *layer)
{
    char *key = malloc(strlen(text) + 2);
    bool good = strcmp(kind, "STORE") == 0  ? reduce_path(text, key)
                : strcmp(kind, "CKPT") == 0 ? reduce_number(text, key)
                                            : is_text(strcpy(key, text));
    good = good && !kvtree_getf(layer, "%s %s", kind, key);
    if (good)
        good = model_fields(w, kind, kvtree_setf(layer, NULL, "%s %s FIELD", kind, key));
    free(key);
    return good;
}

static bool model_locks(const char *text, kvtree *layer)
{
    for (;; text++) {
        size_t n = strcspn(text, ",");
        char *name = strndup(text, n);
        const scr_param *param = scr_param_find(name);
        bool good = param && !kvtree_getf(layer, "SCR_LOCKED %s", param->name);
        if (good) kvtree_setf(layer, NULL, "SCR_LOCKED %s", param->name);
        free(name);
        text += n;
        if (!good || !*text) return good;
    }
}

static bool model_first(struct word *w, const char *name, const char *value,
                        kvtree *layer)
{
    static const char *const kinds[][2] = {
        {"GROUPS", "GROUPS"}, {"STORE", "STORE"},       {"STORES", "STORE"},
        {"CKPT", "CKPT"},     {"LAUNCHER", "LAUNCHER"}, {"LAUNCHERS", "LAUNCHER"}};
    for (size_t i = 0; i < 6; i++)
        if (strcmp(name, kinds[i][0]) == 0)
            return model_desc(w, kinds[i][1], value, layer);
    skip_blanks(w);
    if (w->at < w->end && *w->at != '#') return false;
    if (strcmp(name, "SCR_LOCKED") == 0) return model_locks(value, layer);
    const scr_param *param = scr_param_find(name);
    if (!param || kvtree_get(layer, param->name)) return false;
    kvtree_setf(layer, NULL, "%s VALUE %s", param->name, value);
    return true;
}

static bool model_line(const char *text, size_t n, kvtree *layer)
{
    struct word w = {text, text + n};
    char *name, *value;
    for (size_t i = 0; i < n; i++)
        if (iscntrl((unsigned char)text[i]) && text[i] != '\t') return false;
    int rc = next_pair(&w, &name, &value);
    bool good = rc > 0 ? model_first(&w, name, value, layer) : rc == 0;
    free(name);
    free(value);
    return good;
}

static bool model_lines(const char *text, size_t size, kvtree *layer)
{
    const char *end = text + size;
    bool good = true;
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) text += 3;
    while (text < end && good) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t n = (size_t)((stop ? stop : end) - text);
        good = model_line(text, n > 0 && text[n - 1] == '\r' ? n - 1 : n, layer);
        text += n + (stop != NULL);
    }
    return good;
}

/* ---- writing in both forms ---- */

/* Writes a value in a form. Returns false if the form cannot represent it. */
typedef bool put_text(FILE *out, const char *text);

static bool put_yaml(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c >= 0x80) return false; /* may not be UTF-8, which YAML requires */
        if (iscntrl(c) || strchr("\"\\", c))
            fprintf(out, "\\x%02x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
    return true;
}

static bool put_line(FILE *out, const char *text)
{
    char quote = strchr(text, '"') ? '\'' : '"';
    if (strchr(text, quote)) return false;
    for (const char *c = text; *c; c++)
        if (iscntrl((unsigned char)*c) && *c != '\t') return false;
    fprintf(out, "%c%s%c", quote, text, quote);
    return true;
}

static bool put_name(FILE *out, const char *name, bool yaml)
{
    if (yaml) return put_yaml(out, name);
    fputs(name, out);
    return *name != '#' && !strpbrk(name, "= \t");
}

static bool put_desc(FILE *out, const char *kind, const kvtree_elem *desc, bool yaml)
{
    put_text *put = yaml ? put_yaml : put_line;
    fprintf(out, yaml ? "  - %s: " : "%s=", kind);
    bool good = put(out, kvtree_elem_key(desc));
    const kvtree_elem *e = kvtree_elem_first(kvtree_get(kvtree_elem_hash(desc), "FIELD"));
    for (; e; e = kvtree_elem_next(e)) {
        fputs(yaml ? "\n    " : " ", out);
        good = put_name(out, kvtree_elem_key(e), yaml) && good;
        fputs(yaml ? ": " : "=", out);
        good = put(out, kvtree_get_val(kvtree_elem_hash(e), "VALUE")) && good;
    }
    fputc('\n', out);
    return good;
}

static bool put_locks(FILE *out, const kvtree *locks, bool yaml)
{
    const char *between = yaml ? "SCR_LOCKED: [" : "SCR_LOCKED=";
    const kvtree_elem *e = kvtree_elem_first(locks);
    for (; e; e = kvtree_elem_next(e), between = ",")
        fprintf(out, "%s%s", between, kvtree_elem_key(e));
    fputs(yaml ? "]\n" : "\n", out);
    return true;
}

static bool put_entry(FILE *out, const kvtree_elem *entry, bool yaml)
{
    const char *name = kvtree_elem_key(entry);
    const kvtree *tree = kvtree_elem_hash(entry);
    bool good = true;
    if (strcmp(name, "SCR_LOCKED") == 0) return put_locks(out, tree, yaml);
    if (scr_param_find(name)) {
        fprintf(out, yaml ? "%s: " : "%s=", name);
        good = (yaml ? put_yaml : put_line)(out, kvtree_get_val(tree, "VALUE"));
        fputc('\n', out);
        return good;
    }
    REQUIRE(scr_desc_kind_find(name) != SCR_DESC_KINDS);
    if (yaml) fprintf(out, "%s:\n", name);
    const kvtree_elem *e = kvtree_elem_first(tree);
    for (; e; e = kvtree_elem_next(e))
        good = put_desc(out, name, e, yaml) && good;
    return good;
}

static void write_again(const kvtree *layer, bool yaml)
{
    char *text = NULL;
    size_t size;
    bool good = true;
    scr_problems problems = {.count = 0};
    FILE *out = open_memstream(&text, &size);
    const kvtree_elem *e = kvtree_elem_first(layer);
    for (; e; e = kvtree_elem_next(e))
        good = put_entry(out, e, yaml) && good;
    fclose(out);
    if (good && size > 0) {
        kvtree *again = kvtree_new();
        REQUIRE(scr_is_lines(text, size) == !yaml);
        REQUIRE(scr_config_text_read("f", text, size, again, &problems) == 0);
        if (problems.text) fputs(problems.text, stderr);
        REQUIRE(problems.count == 0);
        values_only(again);
        REQUIRE(fuzz_tree_same(layer, again));
        kvtree_delete(&again);
    }
    free(text);
}

/* ---- properties of every configuration ---- */

static void require_lines(const scr_problems *problems)
{
    int lines = 0;
    REQUIRE((problems->count > 0) == (problems->text != NULL));
    for (const char *c = problems->text; c && *c; c++) {
        REQUIRE(*c == '\n' || !iscntrl((unsigned char)*c));
        lines += *c == '\n';
    }
    int shown = SCR_PROBLEMS_SHOWN + 1;
    REQUIRE(lines == (problems->count < shown ? problems->count : shown));
}

static void require_descs(const scr_config *config, bool good)
{
    scr_descs d;
    scr_problems problems = {.count = 0};
    scr_config_check_places(config, &problems);
    REQUIRE(scr_descs_load(config, &d, &problems) == 0);
    require_lines(&problems);
    good = good && problems.count == 0;
    REQUIRE(d.reddescs.count >= 1 && d.stores.count >= 1);
    for (int i = 0; i < d.reddescs.count; i++) {
        const scr_reddesc *r = &d.reddescs.list[i];
        REQUIRE(r->interval >= 1 && r->set_size >= 2 && r->set_failures >= 1);
        REQUIRE(scr_groups_has(&d.groups, r->group));
        REQUIRE(!good || (r->index == i && scr_stores_find(&d.stores, r->store)));
    }
    for (int i = 0; i < d.stores.count; i++)
        REQUIRE(d.stores.list[i].count >= 1 &&
                scr_groups_has(&d.groups, d.stores.list[i].group));
    for (int n = 1; n <= 24 && good; n++) {
        const scr_reddesc *r = scr_reddesc_for_checkpoint(&d.reddescs, n);
        REQUIRE(r && r->enabled && n % r->interval == 0);
    }
    if (good) REQUIRE(scr_reddesc_for_dataset(&d.reddescs, 0, 1));
    scr_descs_done(&d);
    scr_problems_done(&problems);
}

static bool read_file(const char *text, size_t size)
{
    scr_config c;
    scr_problems problems = {.count = 0};
    REQUIRE(scr_config_init(&c) == 0);
    int rc = scr_config_text_read("f", text, size, c.user, &problems);
    REQUIRE(rc == 0 || (rc == -EBADMSG && problems.count > 0));
    require_lines(&problems);
    bool good = problems.count == 0;
    require_descs(&c, good);
    values_only(c.user);
    if (good) {
        write_again(c.user, true);
        write_again(c.user, false);
    }
    if (scr_is_lines(text, size)) {
        kvtree *model = kvtree_new();
        REQUIRE(model_lines(text, size, model) == good);
        values_only(model);
        REQUIRE(!good || fuzz_tree_same(c.user, model));
        kvtree_delete(&model);
    }
    scr_problems_done(&problems);
    scr_config_done(&c);
    return good;
}

/* Reads without memory: all allocations but the first few fail. */
static void read_without_memory(const char *text, size_t size, uint32_t hash, bool good)
{
    for (int round = 0; round < 2; round++) {
        static size_t calls;
        kvtree *layer = kvtree_new();
        scr_problems problems = {.count = 0};
        fuzz_memory_begin(round ? hash % calls : SIZE_MAX);
        scr_config_text_read("f", text, size, layer, &problems);
        struct fuzz_memory memory = fuzz_memory_end();
        REQUIRE(round || (problems.count == 0) == good);
        if (scr_is_lines(text, size))
            REQUIRE(memory.bytes <= READ_BYTES_PER_BYTE * size + READ_BYTES_MORE);
        calls = memory.calls + 1;
        scr_problems_done(&problems);
        kvtree_delete(&layer);
    }
}

/* ---- SCR_Config ---- */

static void say_config(const char *text)
{
    scr_config c;
    kvtree_error err = {""};
    REQUIRE(scr_config_init(&c) == 0);
    REQUIRE(scr_config_set(&c, "CKPT=0 SET_SIZE=4", &err) == 0 && !err.text[0]);
    kvtree *before = fuzz_tree_copy(c.set);
    int question = scr_config_is_question(text);
    int rc = scr_config_set(&c, text, &err);
    REQUIRE(rc == 0 || (rc == -EINVAL && err.text[0]));
    REQUIRE(!question || rc == -EINVAL);
    if (rc) REQUIRE(fuzz_tree_same(before, c.set));
    require_descs(&c, false);
    if (question) {
        scr_descs d;
        scr_problems problems = {.count = 0};
        REQUIRE(scr_descs_load(&c, &d, &problems) == 0 && problems.count == 0);
        free(scr_descs_answer(&d, text));
        scr_descs_done(&d);
    } else if (rc == 0) { /* setting the value again changes nothing */
        kvtree *once = fuzz_tree_copy(c.set);
        REQUIRE(scr_config_set(&c, text, &err) == 0);
        values_only(once);
        values_only(c.set);
        REQUIRE(fuzz_tree_same(once, c.set));
        kvtree_delete(&once);
    }
    kvtree_delete(&before);
    scr_config_done(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool ready;
    if (!ready) { /* no parameter is set in the environment, but one variable */
        for (const scr_param *p = scr_param_table; p->name; p++)
            unsetenv(p->name);
        setenv("A", "/a", 1);
        ready = true;
    }
    char *text = fuzz_copy(data, size), *string = strndup((const char *)data, size);
    bool good = read_file(text, size);
    read_without_memory(text, size, fuzz_hash(data, size), good);
    say_config(string);
    free(string);
    free(text);
    return 0;
}
