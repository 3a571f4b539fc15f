/* SPDX-License-Identifier: BSD-3-Clause */
/* Layers of parameters and their typed values; see config/parameters.h. */
#include "config/parameters.h"

#include "common/number.h"
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
    for (const scr_param *p = scr_param_table; p->name; p++)
        if (strcmp(p->name, name) == 0) return p;
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

void scr_param_find_unknown(scr_param_told *tell, void *arg)
{
    for (char **e = environ; *e; e++) {
        size_t n = strcspn(*e, "=");
        char name[64];
        if (strncmp(*e, "SCR_", 4) != 0 || n >= sizeof name) continue;
        memcpy(name, *e, n);
        name[n] = 0;
        if (!scr_param_find(name) && strcmp(name, "SCR_CONF_FILE") != 0)
            tell(arg, name, scr_param_nearest(name));
    }
}

int scr_config_init(scr_config *config)
{
    config->have_env = 0;
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
}

int scr_layer_set(kvtree *layer, const char *name, const char *value, const char *source)
{
    kvtree *entry = kvtree_set(layer, name, NULL);
    if (!entry) return -ENOMEM;
    /* in this order: no value is without its source */
    int rc = kvtree_util_set_str(entry, "SOURCE", source);
    return rc ? rc : kvtree_util_set_str(entry, "VALUE", value);
}

static const char *layer_get(const kvtree *layer, const char *name, const char **source)
{
    const kvtree *entry = kvtree_get(layer, name);
    const char *value = kvtree_get_val(entry, "VALUE");
    if (value) *source = kvtree_get_val(entry, "SOURCE");
    return value;
}

int scr_config_capture_env(scr_config *config)
{
    for (const scr_param *p = scr_param_table; p->name; p++) {
        const char *value = getenv(p->name);
        if (value && *value &&
            scr_layer_set(config->env, p->name, value, "the environment") != 0)
            return -ENOMEM;
    }
    config->have_env = 1;
    return 0;
}

const char *scr_config_get(const scr_config *config, const char *name,
                           const char **source)
{
    const char *where, *value;
    if (!source) source = &where;
    const scr_param *param = scr_param_find(name);
    if (config->have_env && !(param && param->flags & SCR_PARAM_LOCAL)) {
        if ((value = layer_get(config->env, name, source))) return value;
    } else if ((value = getenv(name)) && *value) {
        *source = "the environment";
        return value;
    }
    if ((value = layer_get(config->user, name, source))) return value;
    if ((value = layer_get(config->set, name, source))) return value;
    if ((value = layer_get(config->system, name, source))) return value;
    *source = "default";
    return param ? param->value : NULL;
}

/* ---- who may set what ---- */

/* What stands in one layer and may not. */
static void refuse_layer(const kvtree *layer, const char *name, const char *why,
                         scr_problems *problems)
{
    scr_value v = {.name = name};
    v.text = layer_get(layer, name, &v.source);
    if (v.text) scr_value_bad(&v, problems, "%s", why);
}

static void refuse_env(const scr_config *config, const scr_param *param, const char *why,
                       scr_problems *problems)
{
    scr_value v = {param->name, getenv(param->name), "the environment"};
    if (config->have_env && !(param->flags & SCR_PARAM_LOCAL))
        refuse_layer(config->env, param->name, why, problems);
    else if (v.text && *v.text)
        scr_value_bad(&v, problems, "%s", why);
}

/* The places of SCR_LOCKED in a layer where it has no say. */
static void refuse_locks(const kvtree *layer, scr_problems *problems)
{
    const kvtree_elem *e = kvtree_elem_first(kvtree_get(layer, SCR_LOCKED));
    if (!e) return;
    scr_problems_add(problems, "%s (%s): only the system file may have it", SCR_LOCKED,
                     kvtree_get_val(kvtree_elem_hash(e), "SOURCE"));
}

/* What follows "~" in a path below the home folder; NULL: it is none. */
static const char *below_home(const char *path)
{
    return path && path[0] == '~' && (path[1] == '/' || !path[1]) ? path + 1 : NULL;
}

char *scr_config_prefix(const scr_config *config)
{
    const char *given = scr_config_get(config, "SCR_PREFIX", NULL);
    const char *below = below_home(given), *home = getenv("HOME");
    char *path = NULL;
    if (!given || !*given) return strdup(".");
    if (!below || !home || !*home) return strdup(given);
    return asprintf(&path, "%s%s", home, below) < 0 ? NULL : path;
}

static void check_home(const scr_config *config, scr_problems *problems)
{
    scr_value v = scr_config_value(config, "SCR_PREFIX");
    const char *home = getenv("HOME");
    if (!v.text || v.text[0] != '~') return;
    if (!below_home(v.text))
        scr_value_bad(
            &v, problems,
            "home folders of other users are not looked up; give the whole path, "
            "or \"./%s\" for a folder of that name",
            v.text);
    else if (!home || home[0] != '/')
        scr_value_bad(&v, problems, "HOME is not set to a path; give the whole path");
}

void scr_config_check_places(const scr_config *config, scr_problems *problems)
{
    check_home(config, problems);
    const kvtree *locked = kvtree_get(config->system, SCR_LOCKED);
    const char *only = "may only be set in the environment of its node";
    const char *outside = "may only be set in the environment and in the system file";
    refuse_locks(config->user, problems);
    for (const scr_param *p = scr_param_table; p->name; p++) {
        const kvtree *lock = kvtree_get(locked, p->name);
        char why[600];
        snprintf(why, sizeof why, "may only be set in the system file, as %.500s says",
                 lock ? kvtree_get_val(lock, "SOURCE") : "");
        if (lock) refuse_env(config, p, why, problems);
        if (p->flags & SCR_PARAM_OUTSIDE) {
            refuse_layer(config->user, p->name, outside, problems);
            refuse_layer(config->set, p->name, outside, problems);
        }
        if (!lock && !(p->flags & SCR_PARAM_ENVIRONMENT)) continue;
        refuse_layer(config->user, p->name, lock ? why : only, problems);
        refuse_layer(config->set, p->name, lock ? why : only, problems);
        if (p->flags & SCR_PARAM_ENVIRONMENT)
            refuse_layer(config->system, p->name, only, problems);
    }
}

/* ---- typed values ---- */

/* A number of units as a whole number; what is not zero does not become zero. */
static int round_number(double number, double most, double *whole)
{
    if (number >= most || (number > 0 && number < 0.5)) return -ERANGE;
    *whole = number + 0.5;
    return 0;
}

/* Number and unit: the number before the first letter. */
static int split_unit(const char *text, double *number, const char **unit)
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
    if (split_unit(text, &number, &unit) != 0) return -EINVAL;
    if (*unit && (at = strchr(letters, *unit | 0x20))) {
        for (; at >= letters; at--)
            factor *= 1024;
        unit++;
        if (*unit == 'i') unit++;
    }
    if (*unit == 'b' || *unit == 'B') unit++;
    if (*unit) return -EINVAL;
    if (round_number(number * factor, 18446744073709551615.0, &number) != 0)
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
    if (split_unit(text, &number, &unit) != 0) return -EINVAL;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcasecmp(unit, units[i].unit) != 0) continue;
        if (round_number(number * units[i].factor, 1e15, &number) != 0) return -ERANGE;
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

void scr_value_int(const scr_value *value, int least, int *number, scr_problems *problems)
{
    int64_t n;
    if (!value->text) return;
    if (number_int64(value->text, &n) != 0 || n < INT_MIN || n > INT_MAX)
        scr_value_bad(value, problems, "not a whole number");
    else if (n < least)
        scr_value_bad(value, problems, "must be at least %d", least);
    else
        *number = (int)n;
}

void scr_value_switch(const scr_value *value, int *number, scr_problems *problems)
{
    if (!value->text) return;
    if (strcmp(value->text, "0") != 0 && strcmp(value->text, "1") != 0)
        scr_value_bad(value, problems, "neither 0 nor 1");
    else
        *number = value->text[0] == '1';
}

void scr_value_bytes(const scr_value *value, uint64_t *bytes, scr_problems *problems)
{
    if (value->text && scr_parse_bytes(value->text, bytes) != 0)
        scr_value_bad(value, problems, "not a number of bytes (with k, m, g, t, p or e)");
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
    scr_value_switch(&v, value, problems);
}

void scr_config_int(const scr_config *config, const char *name, int least, int *value,
                    scr_problems *problems)
{
    scr_value v = scr_config_value(config, name);
    scr_value_int(&v, least, value, problems);
}

void scr_config_int64(const scr_config *config, const char *name, int64_t least,
                      int64_t *value, scr_problems *problems)
{
    int64_t n;
    scr_value v = scr_config_value(config, name);
    if (!v.text) return;
    if (number_int64(v.text, &n) != 0)
        scr_value_bad(&v, problems, "not a whole number");
    else if (n < least)
        scr_value_bad(&v, problems, "must be at least %lld", (long long)least);
    else
        *value = n;
}

void scr_config_auto(const scr_config *config, const char *name, int *value,
                     int *automatic, scr_problems *problems)
{
    int64_t n;
    scr_value v = scr_config_value(config, name);
    int is_auto = v.text && strcasecmp(v.text, "auto") == 0;
    if (v.text && !is_auto && number_int64(v.text, &n) != 0) {
        scr_value_bad(&v, problems, "neither a whole number nor \"auto\"");
        return;
    }
    *automatic = is_auto;
    if (is_auto)
        *value = 0;
    else
        scr_value_int(&v, 0, value, problems);
}

void scr_config_double(const scr_config *config, const char *name, double least,
                       double *value, scr_problems *problems)
{
    double number;
    scr_value v = scr_config_value(config, name);
    if (!v.text) return;
    if (number_double(v.text, &number) != 0)
        scr_value_bad(&v, problems, "not a number");
    else if (number < least)
        scr_value_bad(&v, problems, "must be at least %g", least);
    else
        *value = number;
}

void scr_config_seconds(const scr_config *config, const char *name, int64_t *value,
                        scr_problems *problems)
{
    scr_value v = scr_config_value(config, name);
    if (v.text && scr_parse_seconds(v.text, value) != 0)
        scr_value_bad(&v, problems, "not a time (a number with s, min, h or d)");
}

void scr_config_bytes(const scr_config *config, const char *name, uint64_t *value,
                      scr_problems *problems)
{
    scr_value v = scr_config_value(config, name);
    scr_value_bytes(&v, value, problems);
}
