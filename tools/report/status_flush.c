/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress of a flush: the files in its directory of the stage
 * (docs/formats/rank2file.md), which no other process reads meanwhile; see status.h. */
#include "common/beneath.h"
#include "common/io.h"
#include "report/status.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <filo/filo.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns the bytes of a file that are on the file system, since its size is final from
 * the first byte on. */
static int64_t status_count_file(int dir, const char *name)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
        return 0;
    int64_t blocks = (int64_t)st.st_blocks * 512;
    return blocks < st.st_size ? blocks : st.st_size;
}

/* Sums the files of a flush without its record. */
static int64_t status_count_folder(int stage, const char *name)
{
    kvtree_error err;
    int64_t sum = 0;
    int folder;
    if (beneath_open_private(stage, name, &folder, &err) != 0) return 0;
    DIR *list = fdopendir(folder);
    if (!list) {
        io_close(&folder);
        return 0;
    }
    for (struct dirent *entry; (entry = readdir(list));)
        if (strcmp(entry->d_name, "stage.scr") != 0)
            sum += status_count_file(dirfd(list), entry->d_name);
    closedir(list);
    return sum;
}

int64_t status_staged(int prefix, const char *name)
{
    char path[SCR_NAME_SIZE + sizeof "/" FILO_STAGE];
    kvtree_error err;
    int64_t sum = 0;
    int stage;
    snprintf(path, sizeof path, "%s/%s", name, FILO_STAGE);
    if (beneath_open_below(prefix, path, &stage, &err) != 0) return -1;
    DIR *list = fdopendir(stage);
    if (!list) {
        io_close(&stage);
        return -1;
    }
    for (struct dirent *entry; (entry = readdir(list));)
        if (entry->d_name[0] != '.')
            sum += status_count_folder(dirfd(list), entry->d_name);
    closedir(list);
    return sum;
}
