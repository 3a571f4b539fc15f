/* SPDX-License-Identifier: BSD-3-Clause */
/* Simulated nodes; see simulate.h. */
#include "run/simulate.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "common/number.h"
#include "common/others.h"
#include "lib/processes.h"
#include "lib/tool.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "scr-nodes-XXXXXX"
#define IDLE "scr_idle.so"
/* An empty file in each directory of that name, which distinguishes it from another
 * directory of this user that other users gave such a name. */
#define MARK ".scr-nodes"

enum {
    TRIES = 100,
    MOST_NODES = 1024,
    MOST_RANKS = 1024,
    PATIENCE = 30 /* timeout for killing a node, in seconds */
};

/* ---- text ---- */

static int simulate_number(const char *text, int64_t least, int64_t most, int *number)
{
    int64_t value;
    if (number_int64(text, &value) != 0 || value < least || value > most) return -EINVAL;
    *number = (int)value;
    return 0;
}

int simulate_parse(const char *text, int *nodes, int *per_node)
{
    char first[16];
    size_t n = strcspn(text, "x");
    if (n == 0 || n >= sizeof first) return -EINVAL;
    memcpy(first, text, n);
    first[n] = 0;
    int count, ranks = 1, rc = simulate_number(first, 1, MOST_NODES, &count);
    if (!rc && text[n]) rc = simulate_number(text + n + 1, 1, MOST_RANKS, &ranks);
    if (rc) return rc;
    *nodes = count;
    *per_node = ranks;
    return 0;
}

/* The value of a NAME=VALUE: a number in a range, or one of two words. */
typedef struct word {
    const char *name, *unit; /* unit: may follow the number, in singular or
                              * plural */
    int *value;
    int least, most;      /* of the number */
    const char *words[2]; /* words for 0 and 1 */
    const char *help;
} word;

static int simulate_parse_value(char *text, const word *w)
{
    size_t digits = strspn(text, "0123456789");
    size_t rest = strlen(text + digits);
    for (int i = 0; w->words[0] && i < 2; i++)
        if (strcmp(text, w->words[i]) == 0) {
            *w->value = i;
            return 0;
        }
    if (w->words[0]) return -EINVAL;
    if (rest && (!w->unit || rest + 1 < strlen(w->unit) ||
                 strncmp(text + digits, w->unit, rest) != 0))
        return -EINVAL;
    text[digits] = 0;
    return simulate_number(text, w->least, w->most, w->value);
}

/* Parses NAME=VALUE; given: a bit for each word that was found. */
static int simulate_parse_word(char *text, const word *words, int *given,
                               kvtree_error *err)
{
    char copy[64], *value = strchr(text, '=');
    int i = 0;
    snprintf(copy, sizeof copy, "%s", text);
    if (!value) return err_set(err, -EINVAL, "'%s' is not NAME=VALUE, as node=1", copy);
    *value++ = 0;
    while (words[i].name && strcmp(text, words[i].name) != 0)
        i++;
    if (!words[i].name)
        return err_set(err, -EINVAL, "%s: there are node, after, run, how and while",
                       copy);
    if (*given & 1 << i)
        return err_set(err, -EINVAL, "%s= is there twice; another node is another --fail",
                       text);
    *given |= 1 << i;
    int rc = simulate_parse_value(value, &words[i]);
    return rc ? err_set(err, rc, "%s: %s", copy, words[i].help) : 0;
}

static int simulate_parse_failure(char *text, int nodes, simulate_failure *f,
                                  kvtree_error *err)
{
    char *one, range[64];
    kvtree_error why = {""};
    int rc = 0, given = 0, node = 0;
    const word words[] = {
        {"node", NULL, &node, 1, nodes, {NULL}, range},
        {"after",
         "checkpoints",
         &f->after,
         0,
         INT_MAX,
         {NULL},
         "it is a number of checkpoints, as 2checkpoints"},
        {"run", NULL, &f->run, 1, INT_MAX, {NULL}, "runs are counted from 1"},
        {"how", NULL, &f->hangs, 0, 0, {"kill", "hang"}, "it is kill or hang"},
        {"while",
         NULL,
         &f->busy,
         0,
         0,
         {"compute", "checkpoint"},
         "it is compute or checkpoint"},
        {0}};
    snprintf(range, sizeof range,
             nodes == 1 ? "there is only node 1" : "there are nodes 1 to %d", nodes);
    *f = (simulate_failure){.run = 1, .reached = -1};
    snprintf(f->text, sizeof f->text, "%s", text);
    while (!rc && (one = strsep(&text, ",")) != NULL)
        rc = simulate_parse_word(one, words, &given, &why);
    if (!rc && !node)
        rc = err_set(&why, -EINVAL, "which node? it needs node=N, as node=1");
    snprintf(f->node, sizeof f->node, "node%d", node);
    if (!rc) return 0;
    /* a single word is in the text already */
    if (strncmp(why.text, f->text, strlen(f->text)) == 0)
        return err_set(err, rc, "%s", why.text);
    return err_set(err, rc, "%s: %s", f->text, why.text);
}

int simulate_parse_failures(const char *text, int nodes,
                            simulate_failure list[SIMULATE_FAILURES], int *count,
                            kvtree_error *err)
{
    char *copy = strdup(text), *rest = copy, *one;
    int n = 0, rc = copy ? 0 : err_set(err, -ENOMEM, "no memory");
    while (!rc && (one = strsep(&rest, " ;")) != NULL) {
        if (!*one) continue;
        if (n == SIMULATE_FAILURES)
            rc = err_set(err, -EINVAL, "%.60s: that is one too many, %d are possible",
                         one, SIMULATE_FAILURES);
        else
            rc = simulate_parse_failure(one, nodes, &list[n++], err);
    }
    free(copy);
    if (!rc) *count = n;
    return rc;
}

/* ---- directories ---- */

static int simulate_make_nodes(const char *folder, int count, hostlist *nodes,
                               kvtree_error *err)
{
    char path[PATH_MAX], list[64];
    for (int i = 1; i <= count; i++) {
        snprintf(path, sizeof path, "%s/node%d", folder, i);
        if (mkdir(path, 0700) != 0) return err_sys(err, -errno, "%s", path);
    }
    snprintf(list, sizeof list, "node[1-%d]", count);
    return hostlist_parse(list, nodes, err);
}

/* Locks the directory. 0 or -errno. Another process may have removed the directory as
 * stale between its creation and the lock. */
static int simulate_lock_folder(int dir, const char *name, int *lock)
{
    struct stat there, open;
    *lock = io_open(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (*lock < 0) return *lock;
    int rc = flock(*lock, LOCK_EX | LOCK_NB) == 0 ? 0 : -errno;
    if (!rc && fstatat(dir, name, &there, AT_SYMLINK_NOFOLLOW) != 0) rc = -errno;
    if (!rc && fstat(*lock, &open) != 0) rc = -errno;
    if (!rc && (there.st_ino != open.st_ino || open.st_uid != geteuid())) rc = -EPERM;
    if (rc) io_close(lock);
    return rc;
}

/* Removes a directory that has the mark: other users may have given the name to another
 * directory of this user. */
static int simulate_remove_tree(int dir, const char *name, kvtree_error *err)
{
    char mark[NAME_MAX + sizeof MARK + 1];
    struct stat st;
    snprintf(mark, sizeof mark, "%s/" MARK, name);
    if (fstatat(dir, mark, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return err_set(err, -EPERM, "it has no " MARK);
    return beneath_remove_tree(dir, name, err);
}

/* Removes the directories of killed runs. */
static void simulate_remove_stale(const char *base)
{
    const size_t before = sizeof NAME - 1 - strlen("XXXXXX");
    int dir = io_open(AT_FDCWD, base, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), lock;
    DIR *stream = dir >= 0 ? beneath_list(dir) : NULL;
    const struct dirent *item;
    while (stream && (item = readdir(stream)) != NULL) {
        if (strlen(item->d_name) != sizeof NAME - 1 ||
            strncmp(item->d_name, NAME, before) != 0 ||
            simulate_lock_folder(dir, item->d_name, &lock) != 0)
            continue;
        if (simulate_remove_tree(dir, item->d_name, NULL) == 0)
            tool_say(SIMULATION_REMOVED,
                     "%s/%s is removed, the nodes of a scr_run that was killed", base,
                     item->d_name);
        io_close(&lock);
    }
    if (stream) closedir(stream);
    io_close(&dir);
}

static int simulate_mark_folder(const char *path)
{
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%s/" MARK, path);
    int fd = io_open(AT_FDCWD, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    return fd < 0 ? fd : io_close(&fd);
}

static void simulate_remove_marked(const char *path)
{
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%s/" MARK, path);
    unlink(name);
    rmdir(path);
}

/* On file systems without locks, stale directories are never removed. */
static int simulate_make_one(char *path, int *lock)
{
    if (!mkdtemp(path)) return -errno;
    int rc = simulate_mark_folder(path);
    if (!rc) rc = simulate_lock_folder(AT_FDCWD, path, lock);
    if (rc == -ENOLCK || rc == -EOPNOTSUPP || rc == -ENOSYS) return 0;
    if (rc) simulate_remove_marked(path);
    return rc;
}

static int simulate_make_folder(const char *base, char **folder, int *lock)
{
    int rc = -EWOULDBLOCK;
    for (int i = 0; i < TRIES && (rc == -EWOULDBLOCK || rc == -ENOENT); i++) {
        char *path;
        if (i > 0 && access(base, F_OK) != 0) return -errno;
        if (asprintf(&path, "%s/" NAME, base) < 0) return -ENOMEM;
        rc = simulate_make_one(path, lock);
        if (rc)
            free(path);
        else
            *folder = path;
    }
    return rc;
}

int simulate_open(int count, char **folder, int *lock, hostlist *nodes, kvtree_error *err)
{
    const char *base = getenv("TMPDIR");
    if (!base || *base != '/') base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    simulate_remove_stale(base);
    *folder = NULL;
    int rc = simulate_make_folder(base, folder, lock);
    if (rc) return err_sys(err, rc, "simulated nodes: %s", base);
    rc = simulate_make_nodes(*folder, count, nodes, err);
    if (!rc) return 0;
    simulate_close(*folder, lock);
    *folder = NULL;
    return rc;
}

static int simulate_remove_below(const char *folder, const char *name, bool marked,
                                 kvtree_error *err)
{
    int dir = io_open(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (dir < 0) return err_sys(err, dir, "%s", folder);
    int rc = marked ? simulate_remove_tree(dir, name, err)
                    : beneath_remove_tree(dir, name, err);
    io_close(&dir);
    return rc;
}

void simulate_close(char *folder, int *lock)
{
    kvtree_error err = {""};
    char *slash = folder ? strrchr(folder, '/') : NULL;
    if (slash) {
        *slash = 0;
        /* retry once after a temporary shortage, as of memory */
        if (simulate_remove_below(folder, slash + 1, true, &err) != 0 &&
            simulate_remove_below(folder, slash + 1, true, &err) != 0)
            tool_say(SIMULATION_LEFT, "simulated nodes are left in %s/%s: %s", folder,
                     slash + 1, err.text);
        io_close(lock);
    }
    free(folder);
}

/* ---- idle ranks ---- */

static bool simulate_has_processors(int ranks)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) != 0 || ranks <= CPU_COUNT(&set);
}

/* Finds the module beside this command, as in a build directory, unless another user may
 * have put it there. */
static bool simulate_find_beside(char path[PATH_MAX])
{
    struct stat own;
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[n > 0 ? n : 0] = 0;
    char *slash = strrchr(path, '/');
    if (!slash || stat(path, &own) != 0) return false;
    slash[1] = 0;
    if (strlen(path) + sizeof IDLE > PATH_MAX || others_put_beside(path)) return false;
    strcpy(slash + 1, IDLE);
    int fd = others_open_beside(path, &own, own.st_uid);
    if (fd < 0) return false;
    io_close(&fd);
    return true;
}

bool simulate_find_idle(int ranks, char path[PATH_MAX])
{
    const char *preload = getenv("LD_PRELOAD");
    if ((preload && *preload) || simulate_has_processors(ranks)) return false;
    if (simulate_find_beside(path)) return true;
    snprintf(path, PATH_MAX, "%s", TOOLS_MODULES "/" IDLE);
    return access(path, R_OK) == 0;
}

/* ---- failures ---- */

/* Whether the cache has a directory of a dataset that is newer than the newest complete
 * one. */
static bool simulate_is_writing(const char *folder, const char *node, int latest)
{
    char pattern[PATH_MAX];
    glob_t found;
    int writing = 0;
    snprintf(pattern, sizeof pattern, "%s/%s/cache/*/*/scr.dataset.*", folder, node);
    if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0) return false;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        int64_t id;
        const char *dot = strrchr(found.gl_pathv[i], '.');
        writing |= number_int64(dot + 1, &id) == 0 && id > latest;
    }
    globfree(&found);
    return writing;
}

bool simulate_is_due(const simulate_failure *f, const char *folder, int run,
                     const run_progress *p)
{
    if (f->done || f->run != run || p->completed < f->after) return false;
    return !f->busy || p->writing || simulate_is_writing(folder, f->node, p->latest);
}

void simulate_describe_missed(const simulate_failure *f, char text[SIMULATE_TEXT_SIZE])
{
    char why[128];
    if (f->reached < 0)
        snprintf(why, sizeof why, "there was no run %d (--runs)", f->run);
    else if (f->reached < f->after)
        snprintf(why, sizeof why, "run %d ended after %d of %d checkpoints", f->run,
                 f->reached, f->after);
    else
        snprintf(why, sizeof why, "run %d was over before %s", f->run,
                 f->busy ? "another checkpoint was written" : "it could");
    snprintf(text, SIMULATE_TEXT_SIZE, "--fail %s did not happen: %s", f->text, why);
}

static int simulate_hang(const char *folder, const char *node,
                         const processes_filter *filter, kvtree_error *err)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s/hung", folder, node);
    int fd = io_open(AT_FDCWD, path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0) return err_sys(err, fd, "%s", path);
    io_close(&fd);
    int rc = processes_signal(filter, SIGSTOP);
    return rc < 0 ? err_sys(err, rc, "stop %s", node) : 0;
}

int simulate_strike(const char *folder, const simulate_failure *f, kvtree_error *err)
{
    char name[64], place[PATH_MAX];
    snprintf(name, sizeof name, "SCR_NODE_NAME=%s", f->node);
    snprintf(place, sizeof place, "SCR_SIMULATE=%s", folder);
    const processes_filter filter = {.variables = {name, place}};
    if (f->hangs) return simulate_hang(folder, f->node, &filter, err);
    int rc = processes_end(&filter, PATIENCE);
    if (rc) return err_sys(err, rc, "kill %s", f->node);
    return simulate_remove_below(folder, f->node, false, err);
}
