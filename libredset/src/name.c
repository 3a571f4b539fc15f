/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of schemes and of redundancy files. */
#include "src/redset_private.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>

static const struct {
    redset_scheme scheme;
    const char *name, *suffix;
} schemes[] = {{REDSET_SINGLE, "SINGLE", "single"},
               {REDSET_PARTNER, "PARTNER", "partner"},
               {REDSET_XOR, "XOR", "xor"},
               {REDSET_RS, "RS", "rs"}};

enum { SCHEMES = sizeof schemes / sizeof schemes[0] };

const char *redset_scheme_name(redset_scheme scheme)
{
    for (int i = 0; i < SCHEMES; i++)
        if (schemes[i].scheme == scheme) return schemes[i].name;
    return NULL;
}

int redset_scheme_from_name(const char *name, redset_scheme *scheme)
{
    for (int i = 0; name && i < SCHEMES; i++)
        if (strcasecmp(schemes[i].name, name) == 0) {
            *scheme = schemes[i].scheme;
            return 0;
        }
    return -EINVAL;
}

static const char *suffix_of(redset_scheme scheme)
{
    for (int i = 0; i < SCHEMES; i++)
        if (schemes[i].scheme == scheme) return schemes[i].suffix;
    return NULL;
}

int redset_file_name(const redset_place *place, char name[REDSET_NAME_SIZE])
{
    const char *suffix = suffix_of(place->scheme);
    if (!suffix || place->id < 0) return -EINVAL;
    if (place->member < 0 || place->member >= place->members) return -EINVAL;
    redset_shape shape = redset_shape_of(place);
    if (redset_shape_check(&shape) != 0) return -EINVAL;
    /* no int has more than ten digits, so that it fits */
    snprintf(name, REDSET_NAME_SIZE, "%d_of_%d_in_%d.%s", place->member + 1,
             place->members, place->id, suffix);
    return 0;
}
