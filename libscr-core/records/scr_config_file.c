/* SPDX-License-Identifier: BSD-3-Clause */
/* Configuration files: YAML, read with libyaml; see scr_param.h. */
#include "records/scr_param.h"

#include <errno.h>
#include <fcntl.h>
#include <kvtree/kvtree.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

/* Lists and mappings within each other; no parameter needs more than a few. */
#define DEPTH_MAX 16

struct reader {
    const char *path;
    yaml_document_t *document;
    kvtree *layer;
    scr_problems *problems;
};

static void problem(const struct reader *r, yaml_mark_t mark, const char *text,
                    const char *name)
{
    scr_problems_add(r->problems, "%s:%zu:%zu: %s \"%.100s\"", r->path, mark.line + 1,
                     mark.column + 1, text, name);
}

/* The text of a node; NULL if it is none, or one with a NUL inside, which C would cut. */
static const char *scalar(const yaml_node_t *node)
{
    if (!node || node->type != YAML_SCALAR_NODE) return NULL;
    const char *text = (const char *)node->data.scalar.value;
    return strlen(text) == node->data.scalar.length ? text : NULL;
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
                         "%s:%zu:%zu: unknown parameter \"%.100s\"; did you mean %s?",
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
        if (expanded && !*expanded)
            problem(r, value->start_mark, "no value for", name);
        else if (expanded && scr_layer_set(r->layer, name, expanded, source) != 0)
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
    yaml_node_pair_t *end = top->data.mapping.pairs.top;
    for (; pair < end && r->problems->count <= SCR_PROBLEMS_SHOWN; pair++)
        read_pair(r, yaml_document_get_node(r->document, pair->key),
                  yaml_document_get_node(r->document, pair->value));
}

static int not_yaml(const struct reader *r, const yaml_parser_t *parser)
{
    scr_problems_add(r->problems, "%s:%zu:%zu: %s", r->path,
                     parser->problem_mark.line + 1, parser->problem_mark.column + 1,
                     parser->problem ? parser->problem : "cannot be read");
    return -EBADMSG;
}

/* +1 where lists and mappings begin, -1 where they end. */
static int step(yaml_event_type_t type)
{
    if (type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT) return 1;
    return type == YAML_SEQUENCE_END_EVENT || type == YAML_MAPPING_END_EVENT ? -1 : 0;
}

/* First the whole file is parsed without keeping anything: it must be YAML, of one
 * document, and not deeply nested, for which libyaml would need quadratic time. */
static int scan(const struct reader *r, yaml_parser_t *parser)
{
    int rc = 0, depth = 0, documents = 0;
    yaml_event_type_t type = YAML_NO_EVENT;
    while (!rc && type != YAML_STREAM_END_EVENT) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event)) return not_yaml(r, parser);
        type = event.type;
        depth += step(type);
        documents += type == YAML_DOCUMENT_START_EVENT;
        if (type == YAML_DOCUMENT_START_EVENT && documents == 2)
            problem(r, event.start_mark, "there may be one document only, no", "---");
        if (depth > DEPTH_MAX) {
            problem(r, event.start_mark, "nested too deeply for", "NAME: value");
            rc = -EBADMSG;
        }
        yaml_event_delete(&event);
    }
    return rc;
}

static int load(const struct reader *r, yaml_parser_t *parser)
{
    if (!yaml_parser_load(parser, r->document)) return not_yaml(r, parser);
    read_document(r);
    yaml_document_delete(r->document);
    return 0;
}

static int parse(const struct reader *r, FILE *file,
                 int (*pass)(const struct reader *, yaml_parser_t *))
{
    yaml_parser_t parser;
    rewind(file);
    if (!yaml_parser_initialize(&parser)) {
        scr_problems_add(r->problems, "%s: no memory", r->path);
        return -ENOMEM;
    }
    yaml_parser_set_input_file(&parser, file);
    int rc = pass(r, &parser);
    yaml_parser_delete(&parser);
    return rc;
}

/* Opens a file of sensible size. O_NONBLOCK: a pipe without a writer is refused, not
 * waited for. */
static int open_file(const char *path, FILE **file, scr_problems *problems)
{
    struct stat st;
    const char *fault = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) return -ENOENT;
    int rc = fd < 0 || fstat(fd, &st) != 0 ? -errno : 0;
    if (!rc && !S_ISREG(st.st_mode)) fault = "not a file";
    if (!rc && !fault && st.st_size > SCR_CONFIG_FILE_MAX) fault = "too large";
    if (fault) rc = -EINVAL;
    *file = rc ? NULL : fdopen(fd, "r");
    if (!rc && !*file) rc = -errno;
    if (!rc) return 0;
    if (fd >= 0) close(fd);
    scr_problems_add(problems, "%s: %s", path, fault ? fault : strerror(-rc));
    return rc;
}

int scr_config_file_read(const char *path, kvtree *layer, scr_problems *problems)
{
    FILE *file;
    yaml_document_t document;
    struct reader r = {path, &document, layer, problems};
    int rc = open_file(path, &file, problems);
    if (rc) return rc;
    rc = parse(&r, file, scan);
    rc = rc ? rc : parse(&r, file, load);
    fclose(file);
    return rc;
}
