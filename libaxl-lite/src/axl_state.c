/* SPDX-License-Identifier: BSD-3-Clause */
/* The state file: the list of a transfer and its progress (docs/formats/transfer.md; SCR
 * Developer Guide 1.2, section 2.22). The process that moves the files writes the state
 * file from time to time, and polls it for commands. */
#include "src/axl_private.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/folder.h"
#include "common/io.h"
#include "common/number.h"
#include "common/others.h"
#include "common/record_size.h"
#include <errno.h>
#include <fcntl.h>
#include <kvtree/kvtree.h>
#include <kvtree/kvtree_util.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- writing ---- */

static int state_set_text(kvtree *tree, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int state_set_text(kvtree *tree, const char *key, const char *format, ...)
{
    char text[64];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return kvtree_util_set_str(tree, key, text);
}

char *axl_absolute(const char *path)
{
    char *made = NULL, *here = *path == '/' ? NULL : getcwd(NULL, 0);
    if (*path == '/') return strdup(path);
    if (here && asprintf(&made, "%s/%s", here, path) < 0) made = NULL;
    free(here);
    return made;
}

enum { SPELLED = 2 * 64 }; /* additional bytes of a spelling */

/* Writes spelling number n of a path: n in binary before the path, "/." for each 1 and
 * "/" for each 0. */
static const char *state_spell(char *text, const char *path, size_t n)
{
    char *end = text;
    for (int bit = 63; bit >= 0; bit--) {
        if (n >> bit == 0) continue;
        *end++ = '/';
        if (n >> bit & 1) *end++ = '.';
    }
    strcpy(end, path);
    return text;
}

/* Returns the first spelling that is not in use. */
static size_t state_find_spelling(const kvtree *files, char *text, const char *path)
{
    size_t from = 0, to = 0;
    while (kvtree_get(files, state_spell(text, path, to))) {
        from = to + 1;
        to = 2 * to + 1;
    }
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (kvtree_get(files, state_spell(text, path, middle)))
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Adds an entry for a source below FILES. Sources with several destinations have several
 * entries. */
static kvtree *state_add_source(kvtree *files, const char *path)
{
    char *full = axl_absolute(path);
    char *text = full ? malloc(strlen(full) + SPELLED + 1) : NULL;
    kvtree *entry = NULL;
    if (text)
        entry = kvtree_set(
            files, state_spell(text, full, state_find_spelling(files, text, full)), NULL);
    free(full);
    free(text);
    return entry;
}

static int state_add_part(const axl_item *item, kvtree *entry)
{
    if (!item->part) return 0;
    int rc = kvtree_util_set_bytecount(entry, "SOURCE_OFFSET", item->from);
    if (!rc) rc = kvtree_util_set_bytecount(entry, "DESTINATION_OFFSET", item->to);
    return rc ? rc : kvtree_util_set_bytecount(entry, "SOURCE_SIZE", item->source_size);
}

static int state_add_item(const axl_transfer *t, const axl_item *item, kvtree *files)
{
    kvtree *entry = state_add_source(files, item->file.source);
    char *destination = axl_absolute(item->file.destination);
    uint64_t written = item->file.done ? item->size : item->synced;
    int rc = entry && destination ? 0 : -ENOMEM;
    if (!rc) rc = kvtree_util_set_str(entry, "DESTINATION", destination);
    if (!rc) rc = state_add_part(item, entry);
    if (!rc) rc = kvtree_util_set_bytecount(entry, "SIZE", item->size);
    if (!rc) rc = kvtree_util_set_bytecount(entry, "WRITTEN", written);
    if (!rc && t->flags & AXL_CHECKSUM)
        rc = kvtree_util_set_crc32(entry, "CRC",
                                   item->file.done ? item->file.crc : item->synced_crc);
    if (!rc)
        rc = state_set_text(entry, "MTIME", "%lld.%09ld", (long long)item->mtime.tv_sec,
                            item->mtime.tv_nsec);
    if (!rc && item->file.done) rc = kvtree_util_set_str(entry, "FLAG", "DONE");
    free(destination);
    return rc;
}

static const struct {
    unsigned flag;
    const char *name;
} flag_names[] = {{AXL_CHECKSUM, "CHECKSUM"},
                  {AXL_KEEP_MODE, "KEEP_MODE"},
                  {AXL_KEEP_TIMES, "KEEP_TIMES"},
                  {AXL_COMPARE, "COMPARE"}};

enum { FLAGS = sizeof flag_names / sizeof flag_names[0] };

static int state_add_folder(const char *path, const char *key, kvtree *tree)
{
    if (!path) return 0;
    char *full = axl_absolute(path);
    int rc = full ? kvtree_util_set_str(tree, key, full) : -ENOMEM;
    free(full);
    return rc;
}

static int state_add_options(const axl_transfer *t, kvtree *tree)
{
    int rc = kvtree_util_set_double(tree, "PERCENT", t->percent);
    if (!rc) rc = kvtree_util_set_double(tree, "BW", t->bandwidth);
    if (!rc) rc = state_set_text(tree, "ID", "%016llx", (unsigned long long)t->id);
    if (!rc) rc = kvtree_util_set_int(tree, "WORKERS", t->workers);
    if (!rc) rc = kvtree_util_set_bytecount(tree, "BUFFER", t->buffer);
    if (!rc) rc = state_add_folder(t->base, "BASE", tree);
    if (!rc) rc = state_add_folder(t->private_folder, "PRIVATE", tree);
    if (!rc) rc = state_add_folder(t->slot_path, "SLOTS", tree);
    if (!rc && t->slot_path) rc = kvtree_util_set_int(tree, "SLOT_COUNT", t->slot_count);
    kvtree *flags = rc ? NULL : kvtree_set(tree, "OPTIONS", NULL);
    if (!flags) return -ENOMEM;
    for (int i = 0; i < FLAGS && !rc; i++)
        if (t->flags & flag_names[i].flag)
            rc = kvtree_set_kv(tree, "OPTIONS", flag_names[i].name) ? 0 : -ENOMEM;
    return rc;
}

int axl_state_build(const axl_transfer *transfer, kvtree **state)
{
    kvtree *tree = kvtree_new();
    kvtree *files = kvtree_set(tree, "FILES", NULL);
    int rc = files ? 0 : -ENOMEM;
    for (size_t i = 0; i < transfer->count && !rc; i++)
        rc = state_add_item(transfer, &transfer->items[i], files);
    if (!rc) rc = state_add_options(transfer, tree);
    if (rc)
        kvtree_delete(&tree);
    else
        *state = tree;
    return rc;
}

/* ---- the file ---- */

static const char *state_value_of(const kvtree *tree, const char *key)
{
    const kvtree *value = kvtree_get(tree, key);
    return kvtree_size(value) == 1 ? kvtree_elem_key(kvtree_elem_first(value)) : NULL;
}

static axl_command state_command_of(const kvtree *tree)
{
    const char *text = state_value_of(tree, "COMMAND");
    if (text && strcmp(text, "RUN") == 0) return AXL_COMMAND_RUN;
    if (text && strcmp(text, "EXIT") == 0) return AXL_COMMAND_EXIT;
    return AXL_COMMAND_STOP;
}

static const char *const command_names[] = {
    [AXL_COMMAND_STOP] = "STOP", [AXL_COMMAND_RUN] = "RUN", [AXL_COMMAND_EXIT] = "EXIT"};

static int state_add_news(kvtree *tree, const axl_news *news)
{
    int rc = kvtree_util_set_str(tree, "STATE", news->running ? "RUNNING" : "STOPPED");
    if (!rc && news->done) rc = kvtree_util_set_str(tree, "FLAG", "DONE");
    if (!rc && news->result) rc = kvtree_util_set_int(tree, "CODE", news->result);
    if (!rc && news->result) rc = kvtree_util_set_str(tree, "ERROR", news->error.text);
    return rc;
}

/* Seconds to wait for another process that holds the lock of the file. The lock is needed
 * for some milliseconds: a process that keeps it longer is stopped, or hangs. */
enum { PATIENCE = 30 };

static int state_check_folder(int dir, const char *path, axl_error *err)
{
    struct stat st;
    if (fstat(dir, &st) != 0)
        return err_sys(err, -errno, "stat the directory of state file %s", path);
    return !others_rename(dir, &st)
               ? 0
               : err_set(err, -EPERM,
                         "state file %s is in a directory in which others can rename "
                         "files; choose one that only you can change",
                         path);
}

/* Opens the directory of a state file, in which others must not be able to rename files.
 * *last is the name in the directory. */
static int state_open_folder(const char *path, int *dir, const char **last,
                             axl_error *err)
{
    int rc = folder_of(AT_FDCWD, path, 0, dir, last, err);
    if (rc) return rc;
    rc = state_check_folder(*dir, path, err);
    if (rc) io_close(dir);
    return rc;
}

/* Refuses a file that others control: each process that reads a state file copies what it
 * lists, with the rights of its own user. */
static int state_check_file(int fd, const char *path, axl_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return err_sys(err, -errno, "stat state file %s", path);
    if (st.st_uid != geteuid())
        return err_set(err, -EPERM, "state file %s belongs to user %ld, not to us (%ld)",
                       path, (long)st.st_uid, (long)geteuid());
    if (others_write(fd, &st))
        return err_set(err, -EPERM, "state file %s can be written by others (mode %03o)",
                       path, (unsigned)(st.st_mode & 0777));
    if (st.st_nlink > 1)
        return err_set(err, -EPERM, "state file %s has another name, too (a hard link)",
                       path);
    return 0;
}

/* Locks the file. A missing file is created. */
static int state_lock(const char *path, int seconds, int *fd, kvtree *old, axl_error *err)
{
    int dir;
    const char *last;
    int rc = state_open_folder(path, &dir, &last, err);
    if (rc) return rc;
    rc = kvtree_file_lock_within(dir, last, RECORD_SIZE_FILES, seconds, fd, old, err);
    io_close(&dir);
    if (!rc && (rc = state_check_file(*fd, path, err)) != 0) io_close(fd);
    return rc;
}

/* Locks the file. listed: the file must have a list. */
static int state_open_locked(const char *path, bool listed, int seconds, int *fd,
                             kvtree **old, axl_error *err)
{
    *old = kvtree_new();
    if (!*old) return err_sys(err, -ENOMEM, "state file %s", path);
    int rc = state_lock(path, seconds, fd, *old, err);
    if (!rc && listed && !kvtree_get(*old, "FILES")) {
        unlink(path); /* the file had been removed; locking recreated it */
        io_close(fd);
        rc = err_sys(err, -ENOENT, "state file %s", path);
    }
    if (rc) kvtree_delete(old);
    return rc;
}

/* Writes the tree unless rc is an error, and releases the lock. */
static int state_close_locked(const char *path, int *fd, const kvtree *tree, int rc,
                              axl_error *err)
{
    if (!rc)
        return kvtree_file_write_close_unlock(AT_FDCWD, path, RECORD_SIZE_FILES, fd, tree,
                                              err);
    io_close(fd);
    return err_sys(err, rc, "state file %s", path);
}

/* Whether the file now has the list of another transfer. A list that a script wrote has
 * no ID yet. */
static bool state_is_of_another(const kvtree *old, const kvtree *state)
{
    const char *there = kvtree_elem_get_first_val(old, "ID"),
               *own = kvtree_elem_get_first_val(state, "ID");
    return there && own && strcmp(there, own) != 0;
}

int axl_state_write(const char *path, kvtree *state, const axl_news *news,
                    axl_command *command, axl_error *err)
{
    kvtree *old;
    int fd, rc = state_open_locked(path, news->follows, PATIENCE, &fd, &old, err);
    if (rc) return rc;
    if (news->follows && state_is_of_another(old, state)) {
        kvtree_delete(&old);
        io_close(&fd);
        return err_sys(err, -ENOENT, "list of this transfer in %s", path);
    }
    /* a command of others is kept; with a fresh list, RUN is written */
    if (kvtree_get(old, "COMMAND") && !news->fresh) *command = state_command_of(old);
    rc = kvtree_util_set_str(state, "COMMAND", command_names[*command]);
    if (!rc) rc = state_add_news(state, news);
    rc = state_close_locked(path, &fd, state, rc, err);
    kvtree_delete(&old);
    return rc;
}

int axl_state_command(const char *path, axl_command command, int seconds, axl_error *err)
{
    kvtree *old;
    int fd, rc = state_open_locked(path, true, seconds, &fd, &old, err);
    if (rc) return rc;
    rc = kvtree_util_set_str(old, "COMMAND", command_names[command]);
    rc = state_close_locked(path, &fd, old, rc, err);
    kvtree_delete(&old);
    return rc;
}

/* ---- reading ---- */

/* Reads a size or an offset. No file is longer than INT64_MAX. */
static int state_get_size(const kvtree *entry, const char *key, unsigned long *size)
{
    int rc = kvtree_util_get_bytecount(entry, key, size);
    return rc == 0 && *size > INT64_MAX ? -EINVAL : rc;
}

static int state_get_time(const kvtree *entry, struct timespec *time)
{
    int64_t seconds;
    char whole[NUMBER_TEXT_SIZE];
    const char *text = state_value_of(entry, "MTIME"),
               *point = text ? strchr(text, '.') : NULL;
    if (!point || point - text >= NUMBER_TEXT_SIZE ||
        strspn(point + 1, "0123456789") != 9 || point[10])
        return -EBADMSG;
    *stpncpy(whole, text, (size_t)(point - text)) = 0;
    if (number_int64(whole, &seconds) != 0) return -EBADMSG;
    *time = (struct timespec){.tv_sec = (time_t)seconds, .tv_nsec = atol(point + 1)};
    return 0;
}

/* Reads the progress that an earlier process recorded. A writer that knows only the keys
 * of the Developer Guide records no time; its files are copied from the beginning. */
static int state_get_done(const axl_transfer *t, const kvtree *entry, axl_item *item,
                          axl_error *err)
{
    unsigned long size, written, crc = 0;
    const char *flag = state_value_of(entry, "FLAG"), *source = item->file.source;
    bool done = flag && strcmp(flag, "DONE") == 0;
    if (state_get_size(entry, "SIZE", &size) != 0)
        return err_set(err, -EBADMSG, "%s has no valid SIZE", source);
    item->size = size;
    if (!item->part) item->source_size = size;
    if (!kvtree_get(entry, "WRITTEN") || !kvtree_get(entry, "MTIME")) return 0;
    if (state_get_size(entry, "WRITTEN", &written) != 0 || written > size ||
        (done && written < size))
        return err_set(err, -EBADMSG, "%s has no valid WRITTEN", source);
    if (state_get_time(entry, &item->mtime) != 0)
        return err_set(err, -EBADMSG, "%s has no valid MTIME", source);
    if (t->flags & AXL_CHECKSUM &&
        (kvtree_util_get_crc32(entry, "CRC", &crc) != 0 || crc > UINT32_MAX))
        return err_set(err, -EBADMSG, "%s has no valid CRC", source);
    item->begin = item->synced = written;
    item->begin_crc = item->synced_crc = (uint32_t)crc;
    if (!done) return 0;
    item->file.done = 1;
    item->file.size = size;
    item->file.crc = (uint32_t)crc;
    return 0;
}

static int state_add_entry(axl_transfer *t, const kvtree *entry, const axl_file *file,
                           axl_error *err)
{
    unsigned long from, to, size, source_size = 0;
    if (!kvtree_get(entry, "SOURCE_OFFSET") && !kvtree_get(entry, "DESTINATION_OFFSET"))
        return axl_add(t, file->source, file->destination, err);
    if (state_get_size(entry, "SOURCE_OFFSET", &from) != 0 ||
        state_get_size(entry, "DESTINATION_OFFSET", &to) != 0 ||
        state_get_size(entry, "SIZE", &size) != 0)
        return err_set(err, -EBADMSG, "%s: a part without valid offsets or SIZE",
                       file->source);
    if (kvtree_get(entry, "SOURCE_SIZE") &&
        state_get_size(entry, "SOURCE_SIZE", &source_size) != 0)
        return err_set(err, -EBADMSG, "%s has no valid SOURCE_SIZE", file->source);
    const axl_part part = {.source = file->source,
                           .source_offset = from,
                           .destination = file->destination,
                           .destination_offset = to,
                           .length = size};
    int rc = axl_add_part(t, &part, err);
    if (!rc) t->items[t->count - 1].source_size = source_size;
    return rc;
}

static int state_get_item(axl_transfer *t, const char *source, const kvtree *entry,
                          axl_error *err)
{
    const char *destination = state_value_of(entry, "DESTINATION");
    while (strncmp(source, "/./", 3) == 0 || strncmp(source, "//", 2) == 0)
        source += source[1] == '.' ? 2 : 1;
    if (*source != '/' || !destination || *destination != '/')
        return err_set(err, -EBADMSG, "%s has no absolute path or DESTINATION", source);
    const axl_file file = {.source = source, .destination = destination};
    int rc = state_add_entry(t, entry, &file, err);
    if (rc) return rc == -ENOMEM ? rc : -EBADMSG;
    return state_get_done(t, entry, &t->items[t->count - 1], err);
}

static int state_get_limit(const kvtree *tree, const char *key, double *limit,
                           axl_error *err)
{
    if (!kvtree_get(tree, key)) return 0;
    if (kvtree_util_get_double(tree, key, limit) == 0 && axl_is_limit(*limit)) return 0;
    return err_set(err, -EBADMSG, "no valid %s", key);
}

static int state_get_base(axl_transfer *t, const kvtree *tree, axl_error *err)
{
    const char *base = state_value_of(tree, "BASE");
    if (!kvtree_get(tree, "BASE")) return 0;
    if (!base || *base != '/') return err_set(err, -EBADMSG, "no valid BASE");
    t->base = strdup(base);
    return t->base ? 0 : err_sys(err, -ENOMEM, "BASE");
}

static int state_get_private(axl_transfer *t, const kvtree *tree, axl_error *err)
{
    const char *folder = state_value_of(tree, "PRIVATE");
    if (!kvtree_get(tree, "PRIVATE")) return 0;
    int rc = folder ? axl_set_private(t, folder, -1, err) : -EINVAL;
    return rc && rc != -ENOMEM ? err_set(err, -EBADMSG, "no valid PRIVATE") : rc;
}

static int state_get_slots(axl_transfer *t, const kvtree *tree, axl_error *err)
{
    const char *name = state_value_of(tree, "SLOTS");
    int count;
    if (!kvtree_get(tree, "SLOTS")) return 0;
    int rc = -EINVAL;
    if (name && *name == '/' && kvtree_util_get_int(tree, "SLOT_COUNT", &count) == 0)
        rc = axl_set_slots(t, name, count, err);
    return rc && rc != -ENOMEM ? err_set(err, -EBADMSG, "no valid SLOTS") : rc;
}

static int state_get_options(axl_transfer *t, const kvtree *tree, axl_error *err)
{
    unsigned long buffer = 0;
    const char *id = state_value_of(tree, "ID");
    int rc = state_get_limit(tree, "PERCENT", &t->percent, err);
    if (!rc) rc = state_get_limit(tree, "BW", &t->bandwidth, err);
    if (rc) return rc;
    if (kvtree_get(tree, "WORKERS") &&
        (kvtree_util_get_int(tree, "WORKERS", &t->workers) != 0 || t->workers < 0 ||
         t->workers > AXL_WORKERS_MAX))
        return err_set(err, -EBADMSG, "no valid WORKERS");
    if (kvtree_get(tree, "BUFFER") &&
        (kvtree_util_get_bytecount(tree, "BUFFER", &buffer) != 0 || buffer == 0 ||
         buffer > AXL_BUFFER_MAX))
        return err_set(err, -EBADMSG, "no valid BUFFER");
    if (buffer) t->buffer = buffer;
    if (kvtree_get(tree, "ID") && (!id || strspn(id, "0123456789abcdef") != 16 || id[16]))
        return err_set(err, -EBADMSG, "no valid ID");
    t->id = id ? strtoull(id, NULL, 16) : 0;
    rc = state_get_base(t, tree, err);
    if (!rc) rc = state_get_private(t, tree, err);
    if (!rc) rc = state_get_slots(t, tree, err);
    if (rc) return rc;
    for (int i = 0; i < FLAGS; i++)
        if (kvtree_get(kvtree_get(tree, "OPTIONS"), flag_names[i].name))
            t->flags |= flag_names[i].flag;
    return 0;
}

int axl_state_fill(axl_transfer *transfer, const kvtree *state, axl_error *err)
{
    const kvtree *files = kvtree_get(state, "FILES");
    if (!files) return err_set(err, -ENODATA, "no list of files was written yet");
    int rc = state_get_options(transfer, state, err);
    for (kvtree_elem *e = kvtree_elem_first(files); e && !rc; e = kvtree_elem_next(e))
        rc = state_get_item(transfer, kvtree_elem_key(e), kvtree_elem_hash(e), err);
    return rc;
}

/* Reads the file without its lock: writers replace the file as a whole. */
static int state_load(const char *path, kvtree *state, axl_error *err)
{
    int dir, fd = -1;
    char more;
    const char *last;
    int rc = state_open_folder(path, &dir, &last, err);
    if (rc) return rc;
    rc = beneath_open(dir, last, O_RDONLY, 0, &fd, err);
    io_close(&dir);
    if (!rc) rc = state_check_file(fd, path, err);
    ssize_t n = rc ? rc : kvtree_fd_read(fd, RECORD_SIZE_FILES, state, err);
    if (!rc && n < 0) rc = err_wrap(err, (int)n, "read %s", path);
    if (!rc && io_read(fd, &more, 1) > 0)
        rc = err_set(err, -EBADMSG, "read %s: trailing bytes behind the tree", path);
    io_close(&fd);
    return rc;
}

int axl_state_read(const char *path, kvtree *state, axl_news *news, axl_command *command,
                   axl_error *err)
{
    int rc = state_load(path, state, err), code;
    if (rc) return rc;
    const char *running = state_value_of(state, "STATE"),
               *flag = state_value_of(state, "FLAG");
    const char *error = state_value_of(state, "ERROR"), *id = state_value_of(state, "ID");
    *command = state_command_of(state);
    *news = (axl_news){.running = running && strcmp(running, "RUNNING") == 0,
                       .done = flag && strcmp(flag, "DONE") == 0,
                       .id = id ? strtoull(id, NULL, 16) : 0};
    if (kvtree_util_get_int(state, "CODE", &code) == 0 && code < 0) news->result = code;
    if (news->result)
        snprintf(news->error.text, sizeof news->error.text, "%s", error ? error : "");
    return 0;
}

uint64_t axl_state_take(const axl_transfer *transfer, const kvtree *entry, axl_item *item)
{
    axl_item told = {.file = item->file, .part = item->part};
    if (state_get_done(transfer, entry, &told, NULL) != 0) return 0;
    item->file = told.file;
    return told.file.done ? told.size : told.synced;
}

int axl_state_fail(const axl_transfer *transfer, int result, axl_error *err)
{
    kvtree *state;
    axl_news news = {.follows = true, .result = result};
    axl_command command = AXL_COMMAND_RUN;
    news.error = *err;
    int rc = axl_state_build(transfer, &state);
    if (rc) return err_sys(err, rc, "state file %s", transfer->state_path);
    rc = axl_state_write(transfer->state_path, state, &news, &command, err);
    kvtree_delete(&state);
    return rc;
}

int axl_state_peek(const char *path, axl_news *news, axl_command *command)
{
    kvtree *state = kvtree_new();
    int rc = state ? axl_state_read(path, state, news, command, NULL) : -ENOMEM;
    kvtree_delete(&state);
    return rc;
}
