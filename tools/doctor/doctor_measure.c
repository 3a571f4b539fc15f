/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures a site; see doctor.h. */
#include "common/batch.h"
#include "common/io.h"
#include "common/number.h"
#include "doctor/doctor.h"
#include "lib/tool_remote.h"
#include "lib/tool_run.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define MAGIC_OF_MEMORY 0x01021994 /* magic number of tmpfs */

/* ---- the prefix directory ---- */

/* Locks a file, and locks it again through a second open file, as another process
 * would. */
static void measure_lock(doctor_facts *f, int dir, const char *name, int fd)
{
    int other = openat(dir, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    f->lock = io_lock(fd, F_OFD_SETLK, F_WRLCK);
    f->is_exclusive =
        other >= 0 && !f->lock && io_lock(other, F_OFD_SETLK, F_WRLCK) == -EAGAIN;
    io_close(&other);
}

static void measure_clock(doctor_facts *f, int fd)
{
    struct timespec now;
    struct stat st;
    if (io_write(fd, "x", 1) < 0 || io_fsync(fd) != 0 || fstat(fd, &st) != 0) return;
    clock_gettime(CLOCK_REALTIME, &now);
    f->clock = difftime(st.st_mtim.tv_sec, now.tv_sec) +
               (double)(st.st_mtim.tv_nsec - now.tv_nsec) / 1e9;
}

static void measure_prefix(doctor_facts *f, int dir)
{
    char name[64];
    struct statvfs st;
    /* a unique name */
    snprintf(name, sizeof name, ".scr_doctor.%ld.%ld", (long)getpid(), (long)time(NULL));
    int fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    f->write = fd < 0 ? -errno : 0;
    if (!f->write) {
        measure_lock(f, dir, name, fd);
        measure_clock(f, fd);
        unlinkat(dir, name, 0);
    }
    io_close(&fd);
    f->prefix_free = fstatvfs(dir, &st) == 0 ? (int64_t)(st.f_bavail * st.f_frsize) : -1;
}

/* ---- this machine ---- */

static int64_t measure_free(const char *path, bool all)
{
    struct statvfs st;
    if (statvfs(path, &st) != 0) return -1;
    return (int64_t)((all ? st.f_blocks : st.f_bavail) * st.f_frsize);
}

/* Reads a number from a file of one line; -1: the line is not a number, such as "max". */
static int64_t measure_number(const char *path)
{
    char text[64] = "";
    int64_t number = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    io_close(&fd);
    if (n > 0) {
        text[strcspn(text, "\n")] = 0;
        if (number_int64(text, &number) != 0) number = -1;
    }
    return number;
}

/* Returns the memory limit of the cgroup of this process, in version 2 or 1, or else the
 * limit of the root cgroup. Cgroups between these are not read. */
static int64_t measure_limit(void)
{
    char line[512] = "", path[600];
    FILE *in = fopen("/proc/self/cgroup", "re");
    if (!in) return -1;
    bool found = fgets(line, sizeof line, in) && strncmp(line, "0::", 3) == 0;
    fclose(in);
    line[strcspn(line, "\n")] = 0;
    if (!found) return measure_number("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", line + 3);
    int64_t limit = measure_number(path);
    return limit >= 0 ? limit : measure_number("/sys/fs/cgroup/memory.max");
}

void doctor_measure(const tool_prefix *prefix, doctor_facts *f)
{
    const char *base = scr_config_get(&prefix->config, "SCR_CACHE_BASE", NULL);
    struct statfs st;
    struct rlimit files;
    *f =
        (doctor_facts){.memory = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE),
                       .limit = measure_limit(),
                       .shared = measure_free("/dev/shm", true),
                       .cache_free = measure_free(base, false),
                       .files = -1};
    f->in_memory = statfs(base, &st) == 0 && st.f_type == MAGIC_OF_MEMORY;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        f->files = files.rlim_cur == RLIM_INFINITY ? INT64_MAX : (int64_t)files.rlim_cur;
    measure_prefix(f, prefix->dir);
}

/* ---- commands ---- */

/* Takes the first message of the output, without the name of its command, and its
 * identifier. */
static void ask_take_message(doctor_row *row, const char *output)
{
    char line[sizeof row->text];
    size_t length = strcspn(output, "\n");
    snprintf(line, sizeof line, "%.*s", (int)length, output);
    const char *text = strstr(line, ": ");
    char *mark = strrchr(line, '[');
    row->message = -1;
    if (mark && line[strlen(line) - 1] == ']') {
        line[strlen(line) - 1] = 0;
        row->message = doctor_message(mark + 1);
        *mark = 0;
        if (mark > line && mark[-1] == ' ') mark[-1] = 0;
    }
    snprintf(row->text, sizeof row->text, "%s", text ? text + 2 : line);
}

static void ask_command(const tool_prefix *prefix, const char *name, const char *option,
                        doctor_row *row)
{
    static const tool_limits limits = {.seconds = 90, .bytes = 1 << 16, .joined = true};
    char where[PATH_MAX + 16], *path = tool_remote_command(name);
    const char *argv[] = {path, where, option, NULL};
    tool_answer answer;
    kvtree_error err = {"no memory"};
    snprintf(where, sizeof where, "--prefix=%s", prefix->path);
    int rc = path ? tool_run_answer(argv, &limits, &answer, &err) : -ENOMEM;
    row->mark = !rc && answer.code == 0 ? TOOL_GOOD : TOOL_BAD;
    row->message = -1;
    if (rc)
        snprintf(row->text, sizeof row->text, "%s: %.300s", name, err.text);
    else if (answer.code == 0)
        snprintf(row->text, sizeof row->text, "%s finds no problem", name);
    else if (*answer.output)
        ask_take_message(row, answer.output);
    else
        snprintf(row->text, sizeof row->text, "%s: %.300s", name, answer.err.text);
    if (!rc) free(answer.output);
    free(path);
}

int doctor_ask_commands(const tool_prefix *prefix, doctor_row *rows)
{
    static const struct {
        const char *check, *command, *option;
    } table[] = {{"configuration", "scr_params", "--check"},
                 {"directories", "scr_check_node", NULL},
                 {"programs", "scr_test_runtime", NULL}};
    enum { COMMANDS = sizeof table / sizeof *table };
    for (int i = 0; i < COMMANDS; i++) {
        rows[i].check = table[i].check;
        ask_command(prefix, table[i].command, table[i].option, &rows[i]);
    }
    return COMMANDS;
}
