/* SPDX-License-Identifier: BSD-3-Clause */
/* Method "daemon": the process scr_transfer moves the files, controlled by the state
 * file. It continues after this process has ended. If no process serves the file, one is
 * started. */
#include "src/axl_private.h"

#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Most starts of scr_transfer without a byte moved: more would not help. */
enum { STARTS_MAX = 3 };

/* Seconds between two looks at the file: at first, and at most. */
#define FIRST_PAUSE 0.01
#define LAST_PAUSE 0.5

/* Bytes of standard error that are read from a process that does not start. */
enum { NOTES = 1024 };

/* After this number of first pauses without a report of running, nothing moves. */
enum { QUIET = 50 };

/* ---- the process ---- */

/* Creates a file in memory for the standard error of the process; -1 without one. The
 * file stays the standard error while the process runs, so it cannot grow. */
static int daemon_make_notes(void)
{
    int fd = memfd_create("scr_transfer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd > 2 && ftruncate(fd, NOTES) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_GROW) == 0)
        return fd;
    if (fd >= 0) close(fd);
    return -1;
}

/* Returns the first line of the notes without the name of the program. */
static const char *daemon_read_notes(int notes, char text[NOTES + 1])
{
    static const char name[] = "scr_transfer: ";
    ssize_t n = notes < 0 ? 0 : pread(notes, text, NOTES, 0);
    text[n > 0 ? n : 0] = 0;
    text[strcspn(text, "\n")] = 0;
    const bool is_named = strncmp(text, name, strlen(name)) == 0;
    return is_named ? text + strlen(name) : *text ? text : "it gave no reason";
}

static int daemon_add_actions(posix_spawn_file_actions_t *actions, int notes)
{
    int rc = 0;
    for (int fd = 0; fd < 3 && !rc; fd++)
        rc = posix_spawn_file_actions_addopen(actions, fd, "/dev/null", O_RDWR, 0);
    if (!rc && notes >= 0) rc = posix_spawn_file_actions_adddup2(actions, notes, 2);
    return rc ? rc : posix_spawn_file_actions_addclosefrom_np(actions, 3);
}

static int daemon_set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int rc = posix_spawnattr_setsigmask(attributes, &none);
    if (!rc) rc = posix_spawnattr_setsigdefault(attributes, &all);
    if (rc) return rc;
    return posix_spawnattr_setflags(
        attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

/* Starts a process. Returns an errno, like the functions of spawn.h. */
static int daemon_spawn(const char *path, char *const arguments[], int notes,
                        pid_t *child)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc) return rc;
    rc = posix_spawnattr_init(&attributes);
    if (!rc) {
        rc = daemon_add_actions(&actions, notes);
        if (!rc) rc = daemon_set_attributes(&attributes);
        if (!rc)
            rc = posix_spawnp(child, path, &actions, &attributes, arguments, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

/* Waits for a child. Returns whether it ended in time. */
static bool daemon_wait_for_child(pid_t child, double seconds, int *status)
{
    const double end = axl_seconds(CLOCK_MONOTONIC) + seconds;
    for (;;) {
        pid_t done = waitpid(child, status, WNOHANG);
        if (done == child || (done < 0 && errno != EINTR)) return true;
        if (axl_seconds(CLOCK_MONOTONIC) >= end) return false;
        usleep(1000);
    }
}

/* Starts scr_transfer with notes as its standard error; -1: none. */
static int daemon_start_noted(const axl_transfer *t, int notes, axl_error *err)
{
    char program[] = "scr_transfer", background[] = "--background", leave[] = "--leave";
    char *arguments[] = {program, background, leave, t->state_path, NULL};
    const char *path = t->daemon_path ? t->daemon_path : program;
    pid_t child;
    int status = 0, rc = daemon_spawn(path, arguments, notes, &child);
    if (rc) return err_sys(err, -rc, "start %s", path);
    if (!daemon_wait_for_child(child, t->patience, &status)) {
        kill(child, SIGKILL);
        daemon_wait_for_child(child, AXL_BEAT, &status);
        return err_set(err, -ETIMEDOUT,
                       "%s (process %d) did not begin within %g seconds; it was killed. "
                       "Is it stopped, or does a file system hang?",
                       path, (int)child, t->patience);
    }
    if (WIFEXITED(status) &&
        (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == AXL_ATTENDED))
        return 0;
    char text[NOTES + 1];
    return err_set(err, -ECHILD, "%s could not be started: %s", path,
                   daemon_read_notes(notes, text));
}

/* Starts scr_transfer, which puts itself into the background and so is not our child. */
static int daemon_start_process(const axl_transfer *t, axl_error *err)
{
    int notes = daemon_make_notes();
    int rc = daemon_start_noted(t, notes, err);
    if (notes >= 0) close(notes);
    return rc;
}

/* ---- the file ---- */

static int daemon_read_file(const axl_transfer *t, kvtree **state, axl_news *news,
                            axl_command *command, axl_error *err)
{
    *state = kvtree_new();
    if (!*state) return err_sys(err, -ENOMEM, "state file %s", t->state_path);
    int rc = axl_state_read(t->state_path, *state, news, command, err);
    if (rc) kvtree_delete(state);
    return rc;
}

/* Reads the state file of this transfer. Two programs that start at the same time may
 * both find the file idle; then it has the list of the later one and says nothing about
 * this transfer. */
static int daemon_read_own(axl_transfer *t, kvtree **state, axl_news *news,
                           axl_command *command, axl_error *err)
{
    char id[20];
    int rc = daemon_read_file(t, state, news, command, err);
    if (rc) return rc;
    snprintf(id, sizeof id, "%016llx", (unsigned long long)t->id);
    const char *written = kvtree_elem_get_first_val(*state, "ID");
    if (written && strcmp(written, id) == 0) return 0;
    kvtree_delete(state);
    t->ours = false;
    return err_set(err, -EBUSY, "%s was taken by another transfer", t->state_path);
}

/* Refuses a file on which a process works. A served file may be idle. */
static int daemon_check_idle(const axl_transfer *t, axl_error *err)
{
    kvtree *state;
    axl_news news;
    axl_command command;
    if (!axl_owner_is_there(t->state_path)) return 0;
    int rc = daemon_read_file(t, &state, &news, &command, err);
    if (rc) return rc == -ENOENT ? 0 : rc;
    bool busy = kvtree_get(state, "FILES") && command == AXL_COMMAND_RUN && !news.done &&
                !news.result;
    kvtree_delete(&state);
    return busy ? err_set(err, -EBUSY, "%s has another transfer that is not finished",
                          t->state_path)
                : 0;
}

static int daemon_write_list(axl_transfer *t, axl_error *err)
{
    kvtree *state;
    axl_command command = AXL_COMMAND_RUN;
    int rc = axl_state_build(t, &state);
    if (rc) return err_sys(err, rc, "state file %s", t->state_path);
    rc = axl_state_write(t->state_path, state, &(axl_news){.fresh = true}, &command, err);
    kvtree_delete(&state);
    return rc;
}

/* ---- the method ---- */

/* Whether the scr_transfer of an earlier program has finished the list, or still works on
 * it. */
static bool daemon_goes_on(axl_transfer *t)
{
    kvtree *state;
    axl_news news;
    axl_command command;
    bool attended = axl_owner_is_there(t->state_path); /* first; see daemon_test */
    if (t->flags & AXL_COMPARE) return false;          /* scr_transfer must compare */
    if (!t->continues || daemon_read_own(t, &state, &news, &command, NULL) != 0)
        return false;
    kvtree_delete(&state);
    return news.done || (attended && command == AXL_COMMAND_RUN && !news.result);
}

static int daemon_start(axl_transfer *transfer, axl_error *err)
{
    if (daemon_goes_on(transfer)) {
        transfer->ours = true;
        return 0;
    }
    int rc = daemon_check_idle(transfer, err);
    transfer->ours = rc == 0;
    if (!rc) rc = daemon_write_list(transfer, err);
    if (!rc && !axl_owner_is_there(transfer->state_path))
        rc = daemon_start_process(transfer, err);
    transfer->starts = 1;
    return rc;
}

/* Copies the progress of each file from the state file, which lists the files in this
 * order. */
static void daemon_take_over(axl_transfer *t, const kvtree *state, axl_progress *progress)
{
    size_t i = 0;
    progress->files_done = 0;
    progress->bytes_done = 0;
    const kvtree *files = kvtree_get(state, "FILES");
    for (kvtree_elem *e = kvtree_elem_first(files); e && i < t->count;
         e = kvtree_elem_next(e), i++) {
        axl_item *item = &t->items[i];
        uint64_t written = axl_state_take(t, kvtree_elem_hash(e), item);
        progress->bytes_done += written;
        progress->files_done += item->file.done != 0;
    }
}

/* Starts scr_transfer again: no process serves the file, though it is not finished. */
static void daemon_start_again(axl_transfer *t, uint64_t bytes)
{
    axl_error err = {""};
    if (bytes > t->bytes_done) t->starts = 0;
    t->bytes_done = bytes;
    int rc = t->starts++ < STARTS_MAX
                 ? daemon_start_process(t, &err)
                 : err_set(&err, -ECHILD,
                           "scr_transfer ended %d times without a result; can %s be "
                           "written?",
                           STARTS_MAX, t->state_path);
    if (rc) axl_transfer_finish(t, rc, err.text);
}

/* Checks the signs of life of a process that should move files, and kills it if there are
 * none. */
static void daemon_listen_to(axl_transfer *t)
{
    char process[32] = "";
    axl_error err;
    axl_listen(&t->listener, t->state_path, t->patience);
    if (!*t->listener.why) return;
    pid_t killed = axl_owner_kill(t->state_path);
    if (killed) snprintf(process, sizeof process, " (process %d)", (int)killed);
    err_set(&err, -ETIMEDOUT,
            "scr_transfer%s %s: it is stopped, or hangs in a file system; it %s", process,
            t->listener.why, killed ? "was killed" : "could not be killed");
    axl_transfer_finish(t, -ETIMEDOUT, err.text);
}

static int daemon_test(axl_transfer *transfer)
{
    axl_error err = {""};
    kvtree *state;
    axl_news news;
    axl_command command;
    axl_progress progress;
    bool attended =
        axl_owner_is_there(transfer->state_path); /* first: a process writes, then ends */
    int rc = daemon_read_own(transfer, &state, &news, &command, &err);
    if (rc) {
        axl_transfer_finish(transfer, rc, err.text);
        return 0;
    }
    daemon_take_over(transfer, state, &progress);
    axl_transfer_report(transfer, progress.bytes_done);
    kvtree_delete(&state);
    if (news.done || news.result) {
        transfer->bytes_done = progress.bytes_done;
        transfer->files_done = progress.files_done;
        axl_transfer_finish(transfer, news.result, news.error.text);
    } else if (command != AXL_COMMAND_RUN) {
        axl_transfer_finish(transfer, -ECANCELED, "the transfer was cancelled");
    } else if (!attended) {
        daemon_start_again(transfer, progress.bytes_done);
    } else {
        daemon_listen_to(transfer);
    }
    return transfer->state == AXL_FINISHED ? 0 : AXL_RUNNING;
}

static void daemon_wait(axl_transfer *transfer)
{
    double pause = FIRST_PAUSE;
    while (daemon_test(transfer) == AXL_RUNNING) {
        usleep((useconds_t)(1e6 * pause));
        pause = pause < LAST_PAUSE ? 2 * pause : LAST_PAUSE;
    }
}

/* Waits until no process moves files. Returns true if one still does at the time end. */
static bool daemon_is_moving(const char *path, int most, double end)
{
    axl_news news;
    axl_command command;
    /* a process that is about to begin reports this soon, and then obeys */
    for (int quiet = 0; quiet < most && axl_owner_is_there(path); quiet++) {
        if (axl_state_peek(path, &news, &command) == 0 && news.running) quiet = 0;
        if (axl_seconds(CLOCK_MONOTONIC) >= end) return true;
        usleep((useconds_t)(1e6 * FIRST_PAUSE));
    }
    return false;
}

int axl_daemon_halt(const char *path, double patience, bool for_good, axl_error *err)
{
    const double end = axl_seconds(CLOCK_MONOTONIC) + patience;
    int rc = axl_state_command(path, AXL_COMMAND_STOP, (int)patience, err), most = QUIET;
    /* a missing file also stops the process, at its next look */
    if (rc && rc != -ENOENT && for_good && unlink(path) == 0) {
        rc = 0;
        most += (int)(2 * AXL_INTERVAL / FIRST_PAUSE);
    }
    bool locked = rc == -ETIMEDOUT;
    if ((rc && !locked) || (!locked && !daemon_is_moving(path, most, end))) return rc;
    if (axl_owner_kill(path)) return 0;
    return locked ? rc
                  : err_set(err, -ETIMEDOUT,
                            "scr_transfer did not obey %s for %g seconds, and could not "
                            "be killed: is it stopped, or does a file system hang?",
                            path, patience);
}

/* Only a cancel (for_good) stops scr_transfer. */
static void daemon_stop(axl_transfer *transfer, bool for_good)
{
    axl_error err = {""};
    if (!for_good) return;
    kvtree *state;
    axl_news news;
    axl_command command;
    int rc = daemon_read_own(transfer, &state, &news, &command, &err);
    if (!rc) kvtree_delete(&state);
    if (!rc) rc = axl_daemon_halt(transfer->state_path, transfer->patience, true, &err);
    for (size_t i = 0; i < transfer->count && !rc; i++)
        axl_place_remove(transfer, i);
    axl_transfer_finish(transfer, rc ? rc : -ECANCELED,
                        rc ? err.text : "the transfer was cancelled");
}

static void daemon_look(const axl_transfer *transfer, size_t i, axl_file *file,
                        axl_progress *progress)
{
    kvtree *state;
    axl_news news;
    axl_command command;
    axl_progress now = {0};
    if (daemon_read_own((axl_transfer *)transfer, &state, &news, &command, NULL) == 0) {
        daemon_take_over((axl_transfer *)transfer, state, &now);
        kvtree_delete(&state);
    }
    if (file) *file = transfer->items[i].file;
    if (progress) {
        progress->files_done = now.files_done;
        progress->bytes_done = now.bytes_done;
    }
}

const axl_method axl_daemon = {
    .name = "daemon",
    .remote = true,
    .start = daemon_start,
    .test = daemon_test,
    .wait = daemon_wait,
    .stop = daemon_stop,
    .look = daemon_look,
};
