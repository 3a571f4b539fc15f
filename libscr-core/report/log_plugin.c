/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds and loads the plugin for the database; see report/log_plugin.h. The search never
 * uses the working directory or an environment variable. */
#include "report/log_private.h"

#include "common/errtext.h"
#include "common/io.h"
#include "common/others.h"
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Relative to the directory of libscr, of a build, and of commands. */
static const char *const plugin_folders[] = {"scr/", "", "../" SCR_LIBDIR "/scr/"};

/* Finds the directory (with a slash) of the library or program that contains this code,
 * and the facts about its file. Also returns false if other users can put files beside
 * it. */
static bool plugin_find_own_folder(char folder[PATH_MAX], struct stat *own)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (!dladdr1(plugin_folders, &info, (void **)&map, RTLD_DL_LINKMAP)) return false;
    /* a program's name would be its first argument, which can be any text */
    ssize_t n = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    folder[n > 0 ? n : 0] = 0;
    if (map->l_name[0]) snprintf(folder, PATH_MAX, "%s", map->l_name);
    if (folder[0] != '/' || stat(folder, own) != 0) return false;
    strrchr(folder, '/')[1] = 0;
    return !others_put_beside(folder);
}

/* Returns the plugin beside this code, open; or else -1, with the path of the installed
 * one. */
static int plugin_find(char path[SCR_LOG_PLUGIN_PATH])
{
    char folder[PATH_MAX];
    struct stat own;
    int fd = -1;
    bool is_found = plugin_find_own_folder(folder, &own);
    for (size_t i = 0; is_found && i < sizeof plugin_folders / sizeof(char *); i++) {
        snprintf(path, SCR_LOG_PLUGIN_PATH, "%s%s" SCR_LOG_PLUGIN_NAME, folder,
                 plugin_folders[i]);
        fd = others_open_beside(path, &own, own.st_uid);
        if (fd >= 0) return fd;
    }
    snprintf(path, SCR_LOG_PLUGIN_PATH, "%s", SCR_PLUGINS "/" SCR_LOG_PLUGIN_NAME);
    return fd;
}

/* Loads the file that was checked: its name may lead to another file by now. */
static void *plugin_load_open(const char *path, int fd)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    void *module = dlopen(fd < 0 ? path : link, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    io_close(&fd);
    return module;
}

int scr_log_plugin_load(const char *path, const scr_log_plugin **plugin,
                        kvtree_error *err)
{
    char found[SCR_LOG_PLUGIN_PATH];
    int fd = path ? -1 : plugin_find(found);
    path = path ? path : found;
    if (fd < 0 && access(path, F_OK) != 0)
        return err_sys(err, -errno, "the plugin for databases, %.300s", path);
    void *module = plugin_load_open(path, fd);
    const scr_log_plugin *table = module ? dlsym(module, SCR_LOG_PLUGIN_SYMBOL) : NULL;
    if (!table) {
        const char *why = dlerror();
        return err_set(err, -ENOSYS, "load a plugin: %.300s: %s", path, why ? why : "?");
    }
    if (table->version != SCR_LOG_PLUGIN_VERSION)
        return err_set(err, -ENOSYS, "the plugin %.300s has version %d, not %d", path,
                       table->version, SCR_LOG_PLUGIN_VERSION);
    *plugin = table;
    return 0;
}
