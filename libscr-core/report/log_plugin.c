/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds and loads the plugin for the database; see report/log_plugin.h. The search never
 * uses the working folder or a variable of the environment. */
#include "report/log_private.h"

#include "common/errtext.h"
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Below the folder of libscr, of build folders, and of commands. */
static const char *const plugin_folders[] = {"scr/", "", "../" SCR_LIBDIR "/scr/"};

/* The folder, with a slash, of the library or the program that has this code, and the
 * owner of the file. */
static bool plugin_find_own_folder(char folder[PATH_MAX], uid_t *owner)
{
    Dl_info info;
    struct link_map *map = NULL;
    struct stat st;
    if (!dladdr1(plugin_folders, &info, (void **)&map, RTLD_DL_LINKMAP)) return false;
    /* the name of a program would be the first argument, which can be any text */
    ssize_t n = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    folder[n > 0 ? n : 0] = 0;
    if (map->l_name[0]) snprintf(folder, PATH_MAX, "%s", map->l_name);
    if (folder[0] != '/' || stat(folder, &st) != 0) return false;
    *owner = st.st_uid;
    strrchr(folder, '/')[1] = 0;
    return true;
}

/* The plugin beside this code, if root or the owner of this code owns it too (a folder
 * may be writable by others), or else the installed one. */
static void plugin_find(char path[SCR_LOG_PLUGIN_PATH])
{
    char folder[PATH_MAX];
    struct stat st;
    uid_t owner = 0;
    bool is_found = plugin_find_own_folder(folder, &owner);
    for (size_t i = 0; is_found && i < sizeof plugin_folders / sizeof(char *); i++) {
        snprintf(path, SCR_LOG_PLUGIN_PATH, "%s%s" SCR_LOG_PLUGIN_NAME, folder,
                 plugin_folders[i]);
        if (stat(path, &st) == 0 && (st.st_uid == 0 || st.st_uid == owner)) return;
    }
    snprintf(path, SCR_LOG_PLUGIN_PATH, "%s", SCR_PLUGINS "/" SCR_LOG_PLUGIN_NAME);
}

int scr_log_plugin_load(const char *path, const scr_log_plugin **plugin,
                        kvtree_error *err)
{
    char found[SCR_LOG_PLUGIN_PATH];
    if (!path) plugin_find(found);
    path = path ? path : found;
    if (access(path, F_OK) != 0)
        return err_sys(err, -errno, "the plugin for databases, %.300s", path);
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const scr_log_plugin *table = module ? dlsym(module, SCR_LOG_PLUGIN_SYMBOL) : NULL;
    if (!table) return err_set(err, -ENOSYS, "load a plugin: %s", dlerror());
    if (table->version != SCR_LOG_PLUGIN_VERSION)
        return err_set(err, -ENOSYS, "the plugin %.300s has version %d, not %d", path,
                       table->version, SCR_LOG_PLUGIN_VERSION);
    *plugin = table;
    return 0;
}
