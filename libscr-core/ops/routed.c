/* SPDX-License-Identifier: BSD-3-Clause */
/* Names and files that SCR_Route_file may be given, and was given. */
#include "ops/route.h"

#include "common/errtext.h"
#include <errno.h>

int scr_routed_check(const struct scr *scr, int valid, kvtree_error *err)
{
    if (!valid)
        return err_set(err, -EINVAL, "the application says that its files are not valid");
    if (scr->output.route_failed)
        return err_set(err, -EINVAL, "SCR_Route_file failed, so a file is missing");
    const kvtree_elem *refused = kvtree_elem_first(scr->output.refused);
    if (refused)
        return err_set(err, -EINVAL,
                       "SCR_Route_file refused \"%.200s\", and the rank routed no other "
                       "file in its place",
                       kvtree_elem_key(refused));
    return 0;
}

int scr_routed_any(long files, kvtree_error *err)
{
    if (files > 0) return 0;
    return err_set(err, -EINVAL,
                   "no rank routed a file; call SCR_Route_file for each file between "
                   "SCR_Start_output and SCR_Complete_output");
}
