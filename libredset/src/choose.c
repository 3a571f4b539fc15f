/* SPDX-License-Identifier: BSD-3-Clause */
/* Which set a process belongs to: dealing the processes out like cards. See redset.h. */
#include "src/redset_private.h"

#include "common/errtext.h"
#include <errno.h>

int redset_choose(int procs, int largest_group, int set_size, int position,
                  redset_place *place)
{
    if (procs < 1 || largest_group < 1 || largest_group > procs || set_size < 1)
        return -EINVAL;
    if (position < 0 || position >= procs) return -EINVAL;
    int sets = procs / set_size;
    if (sets < largest_group) sets = largest_group;
    place->sets = sets;
    place->set = position % sets;
    place->member = position / sets;
    place->members = redset_members_of(procs, sets, place->set);
    return 0;
}

int redset_members_of(int procs, int sets, int set)
{
    return procs / sets + (set < procs % sets);
}

int redset_choose_scheme(redset_scheme scheme, int failures, redset_place *place,
                         char *err)
{
    redset_place chosen = *place;
    int wanted = failures && scheme != REDSET_XOR ? failures : 1;
    chosen.scheme = place->members == 1 ? REDSET_SINGLE : scheme;
    chosen.failures = wanted < place->members ? wanted : place->members - 1;
    if (chosen.scheme == REDSET_SINGLE) chosen.failures = 0;
    redset_shape shape = redset_shape_of(&chosen);
    if (redset_shape_check(&shape) != 0)
        return err_set(err, -EINVAL,
                       "a set of %d members is too large for RS: at most %d",
                       place->members, REDSET_RS_MEMBERS_MAX);
    *place = chosen;
    return 0;
}
