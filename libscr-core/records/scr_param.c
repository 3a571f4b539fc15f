/* SPDX-License-Identifier: BSD-3-Clause */
/* Layers of parameters and their typed values; see scr_param.h. */
#include "records/scr_param.h"

#include "common/number.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const scr_param *scr_param_find(const char *name)
{
    for (const scr_param *p = scr_param_table; p->name; p++)
        if (strcmp(p->name, name) == 0) return p;
    return NULL;
}

/* Levenshtein's distance, without regard to case, of the first 64 bytes. */
static int distance(const char *a, const char *b)
{
    int row[65], n = (int)strnlen(b, 64), m = (int)strnlen(a, 64);
    for (int j = 0; j <= n; j++)
        row[j] = j;
    for (int i = 1; i <= m; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int change = diagonal + (strncasecmp(&a[i - 1], &b[j - 1], 1) != 0);
            diagonal = row[j];
            int step = (row[j - 1] < row[j] ? row[j - 1] : row[j]) + 1;
            row[j] = change < step ? change : step;
        }
    }
    return row[n];
}

const char *scr_param_nearest(const char *name)
{
    const char *best = scr_param_table[0].name;
    int least = INT_MAX;
    for (const scr_param *p = scr_param_table; p->name; p++) {
        int d = distance(name, p->name);
        if (d < least) {
            least = d;
            best = p->name;
        }
    }
    return best;
}

void scr_problems_add(scr_problems *problems, const char *format, ...)
{
    char *line = NULL, *longer = NULL;
    int n, room = problems->count++ - SCR_PROBLEMS_SHOWN;
    if (room > 0) return;
    va_list args;
    va_start(args, format);
    n = room < 0 ? vasprintf(&line, format, args)
                 : asprintf(&line, "further problems are not shown");
    va_end(args);
    if (n < 0) return;
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
    if (asprintf(&longer, "%s%s\n", problems->text ? problems->text : "", line) >= 0) {
        free(problems->text);
        problems->text = longer;
    }
    free(line);
}

void scr_problems_done(scr_problems *problems)
{
    free(problems->text);
    problems->text = NULL;
    problems->count = 0;
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
    int rc = kvtree_util_set_str(entry, "VALUE", value);
    return rc ? rc : kvtree_util_set_str(entry, "SOURCE", source);
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

static void bad_value(scr_problems *problems, const char *name, const char *value,
                      const char *source, const char *wanted)
{
    scr_problems_add(problems, "%s=\"%.100s\" (%s): %s", name, value, source, wanted);
}

void scr_config_int(const scr_config *config, const char *name, int *value,
                    scr_problems *problems)
{
    const char *source, *text = scr_config_get(config, name, &source);
    int64_t number;
    if (!text) return;
    if (number_int64(text, &number) != 0 || number < INT_MIN || number > INT_MAX)
        bad_value(problems, name, text, source, "not a whole number");
    else if (scr_param_find(name)->type == SCR_PARAM_BOOL && number != 0 && number != 1)
        bad_value(problems, name, text, source, "neither 0 nor 1");
    else
        *value = (int)number;
}

void scr_config_seconds(const scr_config *config, const char *name, int64_t *value,
                        scr_problems *problems)
{
    const char *source, *text = scr_config_get(config, name, &source);
    if (text && scr_parse_seconds(text, value) != 0)
        bad_value(problems, name, text, source,
                  "not a time (a number with s, min, h or d)");
}

void scr_config_bytes(const scr_config *config, const char *name, uint64_t *value,
                      scr_problems *problems)
{
    const char *source, *text = scr_config_get(config, name, &source);
    if (text && scr_parse_bytes(text, value) != 0)
        bad_value(problems, name, text, source,
                  "not a number of bytes (with k, m, g, t, p or e)");
}

void scr_config_double(const scr_config *config, const char *name, double *value,
                       scr_problems *problems)
{
    const char *source, *text = scr_config_get(config, name, &source);
    if (text && number_double(text, value) != 0)
        bad_value(problems, name, text, source, "not a number");
}
