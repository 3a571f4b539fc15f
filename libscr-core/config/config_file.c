/* SPDX-License-Identifier: BSD-3-Clause */
/* Configuration files, and what the readers of both forms share; see
 * config/config_file.h.
 */
#include "config/config_file.h"

#include "base/path.h"
#include "common/io.h"
#include "common/others.h"
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOURCE_SIZE 512

void scr_read_problem(const scr_reader *r, scr_mark mark, const char *text,
                      const char *name)
{
    scr_problems_add(r->problems, "%s:%zu:%zu: %s \"%.100s\"", r->path, mark.line,
                     mark.column, text, name);
}

void scr_read_no_memory(const scr_reader *r, scr_mark mark)
{
    scr_problems_add(r->problems, "%s:%zu:%zu: no memory", r->path, mark.line,
                     mark.column);
}

static void did_you_mean(const scr_reader *r, scr_read_name name, const char *what,
                         const char *nearest)
{
    scr_problems_add(r->problems, "%s:%zu:%zu: unknown %s \"%.100s\"; did you mean %s?",
                     r->path, name.mark.line, name.mark.column, what, name.text, nearest);
}

static void source_text(char source[SOURCE_SIZE], const scr_reader *r, scr_mark mark)
{
    if (r->plain)
        snprintf(source, SOURCE_SIZE, "%.440s", r->path);
    else
        snprintf(source, SOURCE_SIZE, "%.440s:%zu:%zu", r->path, mark.line, mark.column);
}

/* ---- variables ---- */

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

/* Puts the value of a variable into stream; 0 or -1 after a problem. */
static int put_variable(const scr_reader *r, scr_mark mark, FILE *stream,
                        const char *name, size_t n)
{
    char *copy = strndup(name, n);
    const char *value = copy ? getenv(copy) : NULL;
    if (value)
        fputs(value, stream);
    else if (copy)
        scr_read_problem(r, mark, "no such environment variable:", copy);
    else
        scr_read_no_memory(r, mark);
    free(copy);
    return value ? 0 : -1;
}

/* Copies text with variables of the environment put in; NULL after a problem. */
static char *expand(const scr_reader *r, scr_mark mark, const char *text)
{
    char *out = NULL;
    size_t size, skip;
    FILE *stream = open_memstream(&out, &size);
    int bad = 0;
    while (stream && *text && !bad) {
        const char *name;
        size_t n = *text == '$' ? variable(text, &name, &skip) : 0;
        if (n == 0 && text[0] == '$' && text[1] == '{') {
            scr_read_problem(r, mark, "no name of a variable in braces:", text);
            bad = -1;
        } else if (n == 0) {
            fputc(*text++, stream);
        } else {
            bad = put_variable(r, mark, stream, name, n);
            text += skip;
        }
    }
    if (!stream || fclose(stream) != 0) {
        scr_read_no_memory(r, mark);
        bad = -1;
    }
    if (!bad) return out;
    free(out);
    return NULL;
}

/* The value of name, expanded, to be freed; NULL after a problem, and it is one to have
 * none. */
static char *value_of(const scr_reader *r, const char *name, scr_mark mark,
                      const char *text)
{
    char *value = r->plain ? strdup(text) : expand(r, mark, text);
    if (!value && r->plain) scr_read_no_memory(r, mark);
    if (!value || *value || r->plain) return value;
    scr_read_problem(r, mark, "no value for", name);
    free(value);
    return NULL;
}

/* ---- parameters ---- */

int scr_read_param_name(const scr_reader *r, scr_read_name name)
{
    if (!scr_param_find(name.text))
        did_you_mean(r, name, "parameter", scr_desc_nearest(name.text));
    else if (kvtree_get(r->layer, name.text))
        scr_read_problem(r, name.mark, "given twice:", name.text);
    else
        return 1;
    return 0;
}

void scr_read_param(const scr_reader *r, scr_read_name name, scr_mark mark,
                    const char *text)
{
    char source[SOURCE_SIZE];
    if (!scr_read_param_name(r, name)) return;
    char *value = value_of(r, name.text, mark, text);
    source_text(source, r, mark);
    if (value && scr_layer_set(r->layer, name.text, value, source) != 0)
        scr_read_no_memory(r, mark);
    free(value);
}

void scr_read_locked(const scr_reader *r, scr_mark mark, const char *name)
{
    char source[SOURCE_SIZE];
    source_text(source, r, mark);
    if (!scr_param_find(name)) {
        did_you_mean(r, (scr_read_name){name, mark}, "parameter",
                     scr_param_nearest(name));
        return;
    }
    kvtree *list = kvtree_get(r->layer, SCR_LOCKED);
    if (!list) list = kvtree_set(r->layer, SCR_LOCKED, NULL);
    if (kvtree_get(list, name))
        scr_read_problem(r, mark, "given twice:", name);
    else if (!kvtree_setf(list, NULL, "%s SOURCE %s", name, source))
        scr_read_no_memory(r, mark);
}

/* ---- descriptors ---- */

kvtree *scr_read_desc(const scr_reader *r, scr_desc_kind kind, scr_mark mark,
                      const char *text)
{
    char source[SOURCE_SIZE];
    const char *kind_name = scr_desc_kind_name(kind);
    kvtree *desc = NULL;
    char *value = value_of(r, kind_name, mark, text);
    if (!value) return NULL;
    char *key = scr_desc_key(kind, value);
    source_text(source, r, mark);
    if (!key)
        scr_problems_add(r->problems, "%s:%zu:%zu: %s must be %s, not \"%.100s\"",
                         r->path, mark.line, mark.column, kind_name,
                         scr_desc_key_rule(kind), value);
    else if (scr_desc_get(r->layer, kind, key))
        scr_problems_add(r->problems, "%s:%zu:%zu: given twice: \"%s=%.100s\"", r->path,
                         mark.line, mark.column, kind_name, key);
    else if (!(desc = scr_desc_add(r->layer, kind, key, source)))
        scr_read_no_memory(r, mark);
    free(key);
    free(value);
    return desc;
}

static void unknown_field(const scr_reader *r, const scr_read_field *field)
{
    char what[32];
    snprintf(what, sizeof what, "field of %s", scr_desc_kind_name(field->kind));
    if (field->kind != SCR_DESC_GROUPS)
        did_you_mean(r, field->name, what,
                     scr_desc_field_nearest(field->kind, field->name.text));
    else if (!scr_desc_is_name(field->name.text))
        scr_read_problem(r, field->name.mark,
                         "not the name of a group:", field->name.text);
    else
        scr_read_problem(r, field->name.mark,
                         "this group is built in:", field->name.text);
}

void scr_read_field_value(const scr_reader *r, scr_read_field field, scr_mark mark,
                          const char *text)
{
    char source[SOURCE_SIZE];
    const char *name = scr_desc_field_find(field.kind, field.name.text);
    if (!name) {
        unknown_field(r, &field);
        return;
    }
    if (scr_desc_has(field.desc, name)) {
        scr_read_problem(r, field.name.mark, "given twice:", name);
        return;
    }
    char *value = value_of(r, name, mark, text);
    if (!value) return;
    source_text(source, r, mark);
    int groups = field.kind == SCR_DESC_GROUPS;
    if (groups && *value && !scr_desc_is_name(value))
        scr_read_problem(r, mark, "not the value of a group:", value);
    else if (scr_desc_set(field.desc, name, value, groups ? NULL : source) != 0)
        scr_read_no_memory(r, mark);
    free(value);
}

/* ---- files ---- */

int scr_config_text_read(const char *path, const char *text, size_t size, kvtree *layer,
                         scr_problems *problems)
{
    scr_reader r = {path, layer, problems, .plain = 0};
    return scr_is_lines(text, size) ? scr_read_lines(&r, text, size)
                                    : scr_read_yaml(&r, text, size);
}

/* Where a file lies: in a prefix folder (shared), where others may put files, unless
 * those are the trusted ones. open: they may also put files of the user's there. */
typedef struct place {
    int shared, open;
    const char *trusted;
} place;

/* 1 when the list, names or numbers with commas, has that user. */
static int has_user(const char *list, uid_t uid)
{
    char *copy = list ? strdup(list) : NULL, *rest = copy, *name, *end;
    int has = 0;
    while (!has && (name = strsep(&rest, ", ")) != NULL) {
        const struct passwd *user = *name ? getpwnam(name) : NULL;
        unsigned long number = strtoul(name, &end, 10);
        has = user ? user->pw_uid == uid : *name && !*end && number == uid;
    }
    free(copy);
    return has;
}

/* Whether it is by the word of a user that a file, or a link, has its name in a place. */
static int is_by(const place *of, uid_t uid)
{
    return uid == 0 || (!of->open && uid == geteuid()) || has_user(of->trusted, uid);
}

/* Why a file in a prefix folder, where others may put files, is not believed: it may name
 * programs that are executed, and other folders. */
static const char *find_distrust(int fd, const struct stat *st, const place *of)
{
    if (!is_by(of, st->st_uid))
        return st->st_uid == geteuid()
                   ? "is in a folder where others can give that name to any of your "
                     "files, and is not read; chmod g-w,o-w (or +t) the folder, or "
                     "SCR_CONF_FILE=<its path> reads it, or your name in "
                     "SCR_TRUSTED_OWNERS, in the environment or the system file"
                   : "belongs to another user, and is not read; SCR_CONF_FILE=<its path> "
                     "reads it, or its owner's name in SCR_TRUSTED_OWNERS, in the "
                     "environment or the system file";
    if (others_write(fd, st))
        return st->st_mode & S_IWOTH
                   ? "can be changed by everybody, and is not read"
                   : "can be changed by its group, and is not read: chmod g-w, or "
                     "SCR_CONF_FILE=<its path>";
    return NULL;
}

/* Reads all of a file of sensible size into *text, to be freed, with a NUL behind it. of:
 * the place where it lies. */
static int read_all(int fd, const place *of, char **text, size_t *size,
                    const char **fault)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return -errno;
    if (!S_ISREG(st.st_mode)) *fault = "not a file";
    if (!*fault && of->shared) *fault = find_distrust(fd, &st, of);
    if (!*fault && st.st_size > SCR_CONFIG_FILE_MAX) *fault = "too large";
    if (*fault) return -EINVAL;
    *text = malloc((size_t)st.st_size + 1);
    if (!*text) return -ENOMEM;
    ssize_t n = io_read(fd, *text, (size_t)st.st_size);
    if (n < 0) return (int)n;
    *size = (size_t)n;
    (*text)[n] = 0;
    return 0;
}

/* A link to a file of the user's is somebody else's choice. */
static const char *find_foreign_link(const char *path, const place *of)
{
    struct stat st;
    if (!of->shared || lstat(path, &st) != 0 || !S_ISLNK(st.st_mode)) return NULL;
    if (is_by(of, st.st_uid)) return NULL;
    return st.st_uid == geteuid()
               ? "is a link in a folder where others can put it, and is not followed"
               : "is a link of another user, and is not followed";
}

static int read_file(const char *path, const place *of, kvtree *layer,
                     scr_problems *problems)
{
    char *text = NULL;
    size_t size = 0;
    const char *fault = find_foreign_link(path, of);
    if (fault) {
        scr_problems_add(problems, "%s: %s", path, fault);
        return -EINVAL;
    }
    /* O_NONBLOCK: a pipe without a writer is refused, not waited for */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) return -ENOENT;
    int rc = fd < 0 ? -errno : read_all(fd, of, &text, &size, &fault);
    if (fd >= 0) io_close(&fd);
    if (rc)
        scr_problems_add(problems, "%s: %s", path, fault ? fault : strerror(-rc));
    else
        rc = scr_config_text_read(path, text, size, layer, problems);
    free(text);
    return rc;
}

int scr_config_file_read(const char *path, kvtree *layer, scr_problems *problems)
{
    return read_file(path, &(place){0, 0, NULL}, layer, problems);
}

/* What cannot be looked at is read, which tells why. A prefix folder that cannot be used
 * is told of later, as that. */
static int may_be_there(const char *path)
{
    struct stat st;
    return path && (lstat(path, &st) == 0 || errno == EIO || errno == ESTALE);
}

static int is_open(const char *prefix)
{
    struct stat st;
    int fd = open(prefix, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int found = fd >= 0 && fstat(fd, &st) == 0 && others_rename(fd, &st);
    if (fd >= 0) io_close(&fd);
    return found;
}

static void read_of_prefix(scr_config *config, const char *prefix, scr_problems *problems)
{
    char *path[2] = {prefix ? scr_path_join(prefix, "scr.yaml") : NULL,
                     prefix ? scr_path_join(prefix, ".scrconf") : NULL};
    const place shared = {1, prefix && is_open(prefix),
                          scr_config_get(config, "SCR_TRUSTED_OWNERS", NULL)};
    int there[2];
    for (int i = 0; i < 2; i++)
        there[i] = may_be_there(path[i]);
    if (!path[0] || !path[1])
        scr_problems_add(problems, "no memory for the user's file");
    else if (there[0] && there[1])
        scr_problems_add(problems, "both %s and %s are there; one of them has to go",
                         path[0], path[1]);
    else if ((there[0] || there[1]) &&
             read_file(path[there[1]], &shared, config->user, problems) == -ENOENT)
        scr_problems_add(problems, "%s: the file that this link names is not there",
                         path[there[1]]);
    free(path[0]);
    free(path[1]);
}

void scr_config_read_files(scr_config *config, const char *system_file,
                           scr_problems *problems)
{
    scr_config_file_read(system_file, config->system, problems);
    const char *named = getenv("SCR_CONF_FILE");
    char *prefix = scr_config_prefix(config);
    if (!named || !*named)
        read_of_prefix(config, prefix, problems);
    else if (scr_config_file_read(named, config->user, problems) == -ENOENT)
        scr_problems_add(problems, "SCR_CONF_FILE=%s: no such file", named);
    free(prefix);
}
