/* SPDX-License-Identifier: BSD-3-Clause */
/* Configuration files: YAML, read with libyaml; see scr_param.h. */
#include "records/scr_param.h"

#include <errno.h>
#include <kvtree/kvtree.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct reader {
    const char *path;
    yaml_document_t *document;
    kvtree *layer;
    scr_problems *problems;
};

static void problem(const struct reader *r, yaml_mark_t mark, const char *text,
                    const char *name)
{
    scr_problems_add(r->problems, "%s:%zu:%zu: %s \"%s\"", r->path, mark.line + 1,
                     mark.column + 1, text, name);
}

static const char *scalar(const yaml_node_t *node)
{
    return node && node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value
                                                  : NULL;
}

/* Length of the variable's name at text ("$VAR" or "${VAR}"), where it begins, and what
 * to skip. */
static size_t variable(const char *text, const char **name, size_t *skip)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    int braces = text[1] == '{';
    *name = text + 1 + braces;
    size_t n = strspn(*name, letters);
    if (n == 0 || (braces && (*name)[n] != '}')) return 0;
    *skip = 1 + n + 2 * (size_t)braces;
    return n;
}

/* Copies text with variables of the environment put in; NULL after a problem. */
static char *expand(const struct reader *r, yaml_mark_t mark, const char *text)
{
    char *out = NULL;
    size_t size, skip;
    FILE *stream = open_memstream(&out, &size);
    if (!stream) return NULL;
    int bad = 0;
    while (*text && !bad) {
        const char *name, *value;
        size_t n = *text == '$' ? variable(text, &name, &skip) : 0;
        if (n == 0) {
            fputc(*text++, stream);
            continue;
        }
        char *copy = strndup(name, n);
        value = copy ? getenv(copy) : NULL;
        if (value)
            fputs(value, stream);
        else
            problem(r, mark, "no such environment variable:", copy ? copy : name);
        bad = !value;
        free(copy);
        text += skip;
    }
    if (fclose(stream) != 0 || bad) {
        free(out);
        return NULL;
    }
    return out;
}

static void read_pair(const struct reader *r, const yaml_node_t *key,
                      const yaml_node_t *value)
{
    const char *name = scalar(key), *text = scalar(value);
    if (!name) {
        problem(r, key->start_mark, "a name was expected", "");
    } else if (!scr_param_find(name)) {
        scr_problems_add(r->problems,
                         "%s:%zu:%zu: unknown parameter \"%s\"; did you mean %s?",
                         r->path, key->start_mark.line + 1, key->start_mark.column + 1,
                         name, scr_param_nearest(name));
    } else if (kvtree_get(r->layer, name)) {
        problem(r, key->start_mark, "given twice:", name);
    } else if (!text) {
        problem(r, value->start_mark, "one value was expected for", name);
    } else {
        char source[512], *expanded = expand(r, value->start_mark, text);
        snprintf(source, sizeof source, "%s:%zu:%zu", r->path, value->start_mark.line + 1,
                 value->start_mark.column + 1);
        if (expanded && scr_layer_set(r->layer, name, expanded, source) != 0)
            problem(r, key->start_mark, "no memory for", name);
        free(expanded);
    }
}

static void read_document(const struct reader *r)
{
    yaml_node_t *top = yaml_document_get_root_node(r->document);
    if (!top) return; /* an empty file */
    if (top->type != YAML_MAPPING_NODE) {
        problem(r, top->start_mark, "the file must consist of", "NAME: value");
        return;
    }
    yaml_node_pair_t *pair = top->data.mapping.pairs.start;
    for (; pair < top->data.mapping.pairs.top; pair++)
        read_pair(r, yaml_document_get_node(r->document, pair->key),
                  yaml_document_get_node(r->document, pair->value));
}

int scr_config_file_read(const char *path, kvtree *layer, scr_problems *problems)
{
    FILE *file = fopen(path, "re");
    if (!file) {
        int rc = -errno;
        if (rc != -ENOENT) scr_problems_add(problems, "%s: %s", path, strerror(-rc));
        return rc;
    }
    yaml_parser_t parser;
    yaml_document_t document;
    int rc = 0;
    if (!yaml_parser_initialize(&parser)) {
        fclose(file);
        scr_problems_add(problems, "%s: no memory", path);
        return -ENOMEM;
    }
    yaml_parser_set_input_file(&parser, file);
    if (yaml_parser_load(&parser, &document)) {
        read_document(&(struct reader){path, &document, layer, problems});
        yaml_document_delete(&document);
    } else {
        scr_problems_add(problems, "%s:%zu:%zu: %s", path, parser.problem_mark.line + 1,
                         parser.problem_mark.column + 1,
                         parser.problem ? parser.problem : "cannot be read");
        rc = -EBADMSG;
    }
    yaml_parser_delete(&parser);
    fclose(file);
    return rc;
}
