/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether SCR may remove a file; see plan/own_file.h. */
#include "plan/own_file.h"

#include "common/errtext.h"

int scr_file_compare(const filo_file *file, const struct stat *st, kvtree_error *why)
{
    if (!S_ISREG(st->st_mode))
        return err_set(why, FILO_DAMAGED, "\"%.200s\" is not a regular file", file->name);
    if ((uint64_t)st->st_size != file->size)
        return err_set(why, FILO_DAMAGED, "\"%.200s\" has %lld bytes, not %llu",
                       file->name, (long long)st->st_size,
                       (unsigned long long)file->size);
    if (!filo_file_was_written(file, st)) return 0;
    return err_set(why, FILO_DAMAGED,
                   "\"%.200s\" was written since, or copied without its time",
                   file->name);
}
