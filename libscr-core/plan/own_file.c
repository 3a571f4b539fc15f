/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether SCR may remove a file; see plan/own_file.h. */
#include "plan/own_file.h"

#include "common/errtext.h"
#include <stdio.h>
#include <string.h>

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

static void own_file_mark_folder(const struct stat *folder, char mark[SCR_FILE_MARK_SIZE])
{
    snprintf(mark, SCR_FILE_MARK_SIZE, "%llu %llu:", (unsigned long long)folder->st_dev,
             (unsigned long long)folder->st_ino);
}

void scr_file_mark(const struct stat *folder, const struct stat *st,
                   char mark[SCR_FILE_MARK_SIZE])
{
    own_file_mark_folder(folder, mark);
    const size_t n = strlen(mark);
    if (st)
        snprintf(mark + n, SCR_FILE_MARK_SIZE - n, "%llu %lld %lld.%09ld",
                 (unsigned long long)st->st_ino, (long long)st->st_size,
                 (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
}

bool scr_file_is_in(const char *mark, const struct stat *folder)
{
    char now[SCR_FILE_MARK_SIZE];
    own_file_mark_folder(folder, now);
    return strncmp(mark, now, strlen(now)) == 0;
}

bool scr_file_is_written(const char *mark, const struct stat *folder,
                         const struct stat *st, uid_t user)
{
    char now[SCR_FILE_MARK_SIZE];
    scr_file_mark(folder, st, now);
    return scr_file_is_in(mark, folder) && S_ISREG(st->st_mode) && st->st_uid == user &&
           strcmp(mark, now) != 0;
}
