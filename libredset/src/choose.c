/* SPDX-License-Identifier: BSD-3-Clause */
/* Which set a process belongs to: dealing the processes out like cards. See redset.h. */
#include "src/redset_private.h"

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
