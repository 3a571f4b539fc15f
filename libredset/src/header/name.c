/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of schemes and of redundancy files. */
#include "src/codec/flow.h"
#include "src/header/layout.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct {
    redset_scheme scheme;
    const char *name, *suffix;
} name_schemes[] = {{REDSET_SINGLE, "SINGLE", "single"},
                    {REDSET_PARTNER, "PARTNER", "partner"},
                    {REDSET_XOR, "XOR", "xor"},
                    {REDSET_RS, "RS", "rs"}};

enum { NAME_SCHEMES = sizeof name_schemes / sizeof name_schemes[0] };

const char *redset_scheme_name(redset_scheme scheme)
{
    for (int i = 0; i < NAME_SCHEMES; i++)
        if (name_schemes[i].scheme == scheme) return name_schemes[i].name;
    return NULL;
}

int redset_scheme_from_name(const char *name, redset_scheme *scheme)
{
    for (int i = 0; name && i < NAME_SCHEMES; i++)
        if (strcasecmp(name_schemes[i].name, name) == 0) {
            *scheme = name_schemes[i].scheme;
            return 0;
        }
    return -EINVAL;
}

static const char *name_suffix(redset_scheme scheme)
{
    for (int i = 0; i < NAME_SCHEMES; i++)
        if (name_schemes[i].scheme == scheme) return name_schemes[i].suffix;
    return NULL;
}

int redset_file_name(const redset_place *place, char name[REDSET_NAME_SIZE])
{
    const char *suffix = name_suffix(place->scheme);
    if (!suffix || place->id < 0) return -EINVAL;
    if (place->member < 0 || place->member >= place->members) return -EINVAL;
    redset_shape shape = redset_place_shape(place);
    if (redset_shape_check(&shape) != 0) return -EINVAL;
    /* fits, because an int has at most ten digits */
    snprintf(name, REDSET_NAME_SIZE, "%d_of_%d_in_%d.%s", place->member + 1,
             place->members, place->id, suffix);
    return 0;
}

static int name_scheme_from_suffix(const char *suffix, redset_scheme *scheme)
{
    for (int i = 0; i < NAME_SCHEMES; i++)
        if (strcmp(name_schemes[i].suffix, suffix) == 0) {
            *scheme = name_schemes[i].scheme;
            return 0;
        }
    return -EINVAL;
}

int redset_file_name_parse(const char *name, redset_place *place)
{
    char suffix[16], again[REDSET_NAME_SIZE];
    long long number, members, id;
    redset_place p = {.sets = 1};
    if (sscanf(name, "%10lld_of_%10lld_in_%10lld.%15s", &number, &members, &id, suffix) !=
            4 ||
        number > INT_MAX || members > INT_MAX || id > INT_MAX ||
        name_scheme_from_suffix(suffix, &p.scheme) != 0)
        return -EINVAL;
    p.member = (int)number - 1;
    p.members = (int)members;
    p.id = (int)id;
    p.failures = p.scheme != REDSET_SINGLE;
    /* each place has exactly one name: no spaces, signs, leading zeros or trailing text
     */
    if (redset_file_name(&p, again) != 0 || strcmp(name, again) != 0) return -EINVAL;
    place->scheme = p.scheme;
    place->member = p.member;
    place->members = p.members;
    place->id = p.id;
    return 0;
}

int redset_join(char *path, size_t size, const char *folder, const char *name)
{
    int length = snprintf(path, size, "%s%s%s", folder ? folder : "",
                          folder && name ? "/" : "", name ? name : "");
    return (size_t)length < size ? 0 : -ENAMETOOLONG;
}
