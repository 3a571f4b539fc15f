/* SPDX-License-Identifier: BSD-3-Clause */
/* Layers of parameters and their typed values; see config/parameters.h. */
#include "config/parameters.h"

#include "common/number.h"
#include "config/former.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

const scr_param *scr_param_find(const char *name)
{
    const char *now = scr_former_name(name);
    for (const scr_param *p = scr_param_table; p->name; p++)
        if (strcmp(p->name, now ? now : name) == 0) return p;
    return NULL;
}

const char *scr_param_nearest(const char *name)
{
    scr_nearest nearest = {.name = name};
    for (const scr_param *p = scr_param_table; p->name; p++)
        scr_nearest_try(&nearest, p->name);
    return nearest.best;
}

const char *scr_param_type_name(scr_param_type type)
{
    static const char *const names[] = {
        [SCR_PARAM_BOOL] = "switch",    [SCR_PARAM_INT] = "number",
        [SCR_PARAM_BYTES] = "bytes",    [SCR_PARAM_SECONDS] = "time",
        [SCR_PARAM_DOUBLE] = "decimal", [SCR_PARAM_SCHEME] = "scheme",
        [SCR_PARAM_TEXT] = "text",      [SCR_PARAM_AUTO] = "number or auto"};
    return names[type];
}

void scr_param_find_unknown(scr_param_report *report, void *arg)
{
    for (char **e = environ; *e; e++) {
        size_t n = strcspn(*e, "=");
        char name[64];
        if (strncmp(*e, "SCR_", 4) != 0 || n >= sizeof name) continue;
        memcpy(name, *e, n);
        name[n] = 0;
        if (!scr_param_find(name) && strcmp(name, "SCR_CONF_FILE") != 0 &&
            strcmp(name, "SCR_LIBRARY") != 0) /* a parameter of the Python module */
            report(arg, name, scr_former_reason(name), scr_param_nearest(name));
    }
}

int scr_config_init(scr_config *config)
{
    config->have_env = 0;
    config->group_names = NULL;
    config->env = kvtree_new();
    config->user = kvtree_new();
    config->set = kvtree_new();
    config->system = kvtree_new();
    if (config->env && config->user && config->set && config->system) return 0;
    scr_config_done(config);
    return -ENOMEM;
}

void scr_config_done(scr_config *config)
{
    kvtree_delete(&config->env);
    kvtree_delete(&config->user);
    kvtree_delete(&config->set);
    kvtree_delete(&config->system);
    kvtree_delete(&config->group_names);
}

int scr_layer_set(kvtree *layer, const char *name, const char *value, const char *source)
{
    kvtree *entry = kvtree_set(layer, name, NULL);
    if (!entry) return -ENOMEM;
    /* SOURCE first, so that every value has a source */
    int rc = kvtree_util_set_str(entry, "SOURCE", source);
    return rc ? rc : kvtree_util_set_str(entry, "VALUE", value);
}

static const char *param_layer_get(const kvtree *layer, const char *name,
                                   const char **source)
{
    const kvtree *entry = kvtree_get(layer, name);
    const char *value = kvtree_get_val(entry, "VALUE");
    if (value) *source = kvtree_get_val(entry, "SOURCE");
    return value;
}

/* Returns the value in the environment of this process, also under its former name; NULL:
 * unset or empty. */
static const char *param_getenv(const scr_param *param)
{
    const char *value = getenv(param->name), *former = scr_former_of(param->name);
    if ((!value || !*value) && former) value = getenv(former);
    return value && *value ? value : NULL;
}

int scr_config_capture_env(scr_config *config)
{
    for (const scr_param *p = scr_param_table; p->name; p++) {
        const char *value = param_getenv(p);
        if (value && scr_layer_set(config->env, p->name, value, "the environment") != 0)
            return -ENOMEM;
    }
    config->have_env = 1;
    return 0;
}

/* Returns the value in the environment: that of rank 0 once it is known, except for
 * parameters that each node sets on its own. *source is set with a value only. */
static const char *param_get_env(const scr_config *config, const scr_param *param,
                                 const char **source)
{
    if (config->have_env && !(param->flags & SCR_PARAM_LOCAL))
        return param_layer_get(config->env, param->name, source);
    const char *value = param_getenv(param);
    if (value) *source = "the environment";
    return value;
}

const char *scr_config_get(const scr_config *config, const char *name,
                           const char **source)
{
    const kvtree *layers[] = {config->user, config->set, config->system};
    const char *ignored;
    if (!source) source = &ignored;
    const scr_param *param = scr_param_find(name);
    *source = "default";
    if (!param) return NULL;
    const char *value = param_get_env(config, param, source);
    for (int i = 0; i < 3 && !value; i++)
        value = param_layer_get(layers[i], param->name, source);
    return value ? value : param->value;
}

/* ---- where a parameter may be set ---- */

enum { PARAM_IN_ENV = 1, PARAM_IN_USER = 2, PARAM_IN_SET = 4, PARAM_IN_SYSTEM = 8 };

/* Adds a problem for each layer in where that sets the parameter. */
static void param_refuse(const scr_config *config, const scr_param *param, unsigned where,
                         const char *why, scr_problems *problems)
{
    const kvtree *layers[] = {NULL, config->user, config->set, config->system};
    for (int i = 0; i < 4; i++) {
        scr_value v = {.name = param->name};
        v.text = i == 0 ? param_get_env(config, param, &v.source)
                        : param_layer_get(layers[i], v.name, &v.source);
        if (v.text && where & 1u << i) scr_value_bad(&v, problems, "%s", why);
    }
}

/* Adds a problem if the user's file has SCR_LOCKED, which has no effect there. */
static void param_refuse_locks(const kvtree *layer, scr_problems *problems)
{
    const kvtree_elem *e = kvtree_elem_first(kvtree_get(layer, SCR_LOCKED));
    if (!e) return;
    scr_problems_add(problems, "%s (%s): only the system file may have it", SCR_LOCKED,
                     kvtree_get_val(kvtree_elem_hash(e), "SOURCE"));
}

/* Returns the part of path after a "~" that stands for the home directory; otherwise
 * NULL. */
static const char *param_below_home(const char *path)
{
    return path && path[0] == '~' && (path[1] == '/' || !path[1]) ? path + 1 : NULL;
}

char *scr_config_prefix(const scr_config *config)
{
    const char *given = scr_config_get(config, "SCR_PREFIX", NULL);
    const char *below = param_below_home(given), *home = getenv("HOME");
    char *path = NULL;
    if (!given || !*given) return strdup(".");
    if (!below || !home || !*home) return strdup(given);
    return asprintf(&path, "%s%s", home, below) < 0 ? NULL : path;
}

static void param_check_home(const scr_config *config, scr_problems *problems)
{
    scr_value v = scr_config_value(config, "SCR_PREFIX");
    const char *home = getenv("HOME");
    if (!v.text || v.text[0] != '~') return;
    if (!param_below_home(v.text))
        scr_value_bad(
            &v, problems,
            "home directories of other users are not looked up; give the whole path, "
            "or \"./%s\" for a directory of that name",
            v.text);
    else if (!home || home[0] != '/')
        scr_value_bad(&v, problems, "HOME is not set to a path; give the whole path");
}

void scr_config_check_places(const scr_config *config, scr_problems *problems)
{
    const kvtree *locked = kvtree_get(config->system, SCR_LOCKED);
    param_check_home(config, problems);
    param_refuse_locks(config->user, problems);
    for (const scr_param *p = scr_param_table; p->name; p++) {
        const kvtree *lock = kvtree_get(locked, p->name);
        unsigned files = PARAM_IN_USER | PARAM_IN_SET;
        char why[600];
        if (lock) {
            snprintf(why, sizeof why,
                     "may only be set in the system file, as %.500s says",
                     kvtree_get_val(lock, "SOURCE"));
            param_refuse(config, p, files | PARAM_IN_ENV, why, problems);
            files = 0;
        }
        if (p->flags & SCR_PARAM_OUTSIDE)
            param_refuse(config, p, files,
                         "may only be set in the environment and in the system file",
                         problems);
        if (p->flags & SCR_PARAM_ENVIRONMENT)
            param_refuse(config, p, files | PARAM_IN_SYSTEM,
                         "may only be set in the environment of its node", problems);
    }
}

/* ---- typed values ---- */

/* Rounds. A number above 0 that would become 0 gives -ERANGE. */
static int value_round(double number, double most, double *whole)
{
    if (number >= most || (number > 0 && number < 0.5)) return -ERANGE;
    *whole = number + 0.5;
    return 0;
}

/* Splits text into a number and a unit, which may follow after blanks. */
static int value_split_unit(const char *text, double *number, const char **unit)
{
    char digits[32];
    size_t n = strspn(text, "0123456789.");
    if (n == 0 || n >= sizeof digits) return -EINVAL;
    memcpy(digits, text, n);
    digits[n] = 0;
    *unit = text + n + strspn(text + n, " ");
    return number_double(digits, number);
}

int scr_parse_bytes(const char *text, uint64_t *bytes)
{
    double number, factor = 1;
    const char *unit, *letters = "kmgtpe", *at;
    uint64_t whole;
    if (number_uint64(text, &whole) == 0 && strncmp(text, "0x", 2) != 0) {
        *bytes = whole;
        return 0;
    }
    if (value_split_unit(text, &number, &unit) != 0) return -EINVAL;
    if (*unit && (at = strchr(letters, *unit | 0x20))) {
        for (; at >= letters; at--)
            factor *= 1024;
        unit++;
        if (*unit == 'i') unit++;
    }
    if (*unit == 'b' || *unit == 'B') unit++;
    if (*unit) return -EINVAL;
    if (value_round(number * factor, 18446744073709551615.0, &number) != 0)
        return -ERANGE;
    *bytes = (uint64_t)number;
    return 0;
}

int scr_parse_seconds(const char *text, int64_t *seconds)
{
    static const struct {
        const char *unit;
        double factor;
    } units[] = {{"", 1},     {"s", 1},    {"sec", 1},  {"m", 60},
                 {"min", 60}, {"h", 3600}, {"d", 86400}};
    double number;
    const char *unit;
    if (value_split_unit(text, &number, &unit) != 0) return -EINVAL;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcasecmp(unit, units[i].unit) != 0) continue;
        if (value_round(number * units[i].factor, 1e15, &number) != 0) return -ERANGE;
        *seconds = (int64_t)number;
        return 0;
    }
    return -EINVAL;
}

void scr_value_bad(const scr_value *value, scr_problems *problems, const char *format,
                   ...)
{
    char wanted[512];
    va_list args;
    va_start(args, format);
    vsnprintf(wanted, sizeof wanted, format, args);
    va_end(args);
    int secret = strcmp(value->name, "SCR_LOG_DB_PASS") == 0;
    scr_problems_add(problems, "%s=\"%.100s\" (%s): %s", value->name,
                     secret ? "..." : value->text, value->source, wanted);
}

static bool value_number(const scr_value *value, int64_t least, int64_t most,
                         int64_t *number, scr_problems *problems)
{
    if (!value->text) return false;
    const int rc = number_int64(value->text, number);
    if (rc == -EINVAL)
        scr_value_bad(value, problems, "not a whole number");
    else if (rc || *number > most || *number < -most - 1)
        scr_value_bad(value, problems, "must be %lld to %lld", (long long)least,
                      (long long)most);
    else if (*number < least)
        scr_value_bad(value, problems, "must be at least %lld", (long long)least);
    else
        return true;
    return false;
}

static void value_int(const scr_value *value, int least, int *number,
                      scr_problems *problems)
{
    int64_t n;
    if (value_number(value, least, INT_MAX, &n, problems)) *number = (int)n;
}

static void value_auto(const scr_value *value, int *number, scr_problems *problems)
{
    int64_t n;
    if (strcasecmp(value->text, "auto") == 0)
        *number = SCR_AUTO;
    else if (number_int64(value->text, &n) == -EINVAL)
        scr_value_bad(value, problems, "neither a whole number nor \"auto\"");
    else
        value_int(value, 0, number, problems);
}

static void value_switch(const scr_value *value, int *number, scr_problems *problems)
{
    if (strcmp(value->text, "0") != 0 && strcmp(value->text, "1") != 0)
        scr_value_bad(value, problems, "neither 0 nor 1");
    else
        *number = value->text[0] == '1';
}

static void value_double(const scr_value *value, double *number, scr_problems *problems)
{
    double d;
    if (number_double(value->text, &d) != 0)
        scr_value_bad(value, problems, "not a number");
    else if (d < 0)
        scr_value_bad(value, problems, "must be at least 0");
    else
        *number = d;
}

/* rc: how reading an amount with a unit ended. */
static void value_amount(const scr_value *value, int rc, const char *wanted,
                         scr_problems *problems)
{
    if (rc) scr_value_bad(value, problems, "%s", rc == -ERANGE ? "too large" : wanted);
}

void scr_value_read(const scr_value *value, scr_param_type type, int least, void *to,
                    scr_problems *problems)
{
    if (!value->text) return;
    switch (type) {
    case SCR_PARAM_BOOL:
        value_switch(value, to, problems);
        break;
    case SCR_PARAM_INT:
        value_int(value, least, to, problems);
        break;
    case SCR_PARAM_AUTO:
        value_auto(value, to, problems);
        break;
    case SCR_PARAM_BYTES:
        value_amount(value, scr_parse_bytes(value->text, to),
                     "not a number of bytes (with k, m, g, t, p or e)", problems);
        break;
    case SCR_PARAM_SECONDS:
        value_amount(value, scr_parse_seconds(value->text, to),
                     "not a time (a number with s, min, h or d)", problems);
        break;
    case SCR_PARAM_DOUBLE:
        value_double(value, to, problems);
        break;
    case SCR_PARAM_SCHEME:
    case SCR_PARAM_TEXT:
        break;
    }
}

void scr_value_word(const scr_value *value, const char *const words[], char *to,
                    scr_problems *problems)
{
    char all[128] = "";
    if (!value->text) return;
    for (int i = 0; words[i]; i++) {
        if (strcasecmp(value->text, words[i]) == 0) {
            strcpy(to, words[i]);
            return;
        }
        const char *before = i == 0 ? "" : words[i + 1] ? ", " : " or ";
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", before, words[i]);
    }
    scr_value_bad(value, problems, "must be %s", all);
}

scr_value scr_config_value(const scr_config *config, const char *name)
{
    scr_value v = {.name = name};
    v.text = scr_config_get(config, name, &v.source);
    return v;
}

void scr_config_switch(const scr_config *config, const char *name, int *value,
                       scr_problems *problems)
{
    scr_value v = scr_config_value(config, name);
    scr_value_read(&v, SCR_PARAM_BOOL, 0, value, problems);
}

void scr_config_int(const scr_config *config, const char *name, int least, int *value,
                    scr_problems *problems)
{
    scr_value v = scr_config_value(config, name);
    scr_value_read(&v, SCR_PARAM_INT, least, value, problems);
}

void scr_config_int64(const scr_config *config, const char *name, int64_t least,
                      int64_t *value, scr_problems *problems)
{
    int64_t n;
    scr_value v = scr_config_value(config, name);
    if (value_number(&v, least, INT64_MAX, &n, problems)) *value = n;
}

void scr_config_seconds(const scr_config *config, const char *name, int64_t *value,
                        scr_problems *problems)
{
    scr_value v = scr_config_value(config, name);
    scr_value_read(&v, SCR_PARAM_SECONDS, 0, value, problems);
}

void scr_config_bytes(const scr_config *config, const char *name, uint64_t *value,
                      scr_problems *problems)
{
    scr_value v = scr_config_value(config, name);
    scr_value_read(&v, SCR_PARAM_BYTES, 0, value, problems);
}
