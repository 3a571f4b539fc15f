/* SPDX-License-Identifier: BSD-3-Clause */
/* Any text as a transfer file: one line per key (fuzz_lines.h). The real file ends with a
 * checksum, which almost no mutation would pass.
 *
 * A list is accepted exactly when a reader written from docs/formats/transfer.md accepts
 * it, and with the same content. An accepted list is written again, also into a file, and
 * must be read back unchanged. */
#include "fuzz.h"
#include "fuzz_lines.h"
#include "src/axl_private.h"

#include "common/beneath.h"
#include "common/folder.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

/* Reading may allocate this number of bytes in total per byte of a packed tree, plus a
 * constant. The worst case is entries without WRITTEN: 60 bytes packed, 260 in the list
 * and 128 in its index; both had half the size before, and so on. */
#define FILL_BYTES_PER_BYTE 32
#define FILL_BYTES_MORE 16384

/* Syncing files takes time: only one in this number of inputs is written to a file. */
#define FILES_PART 8

/* ---- what the format says ---- */

/* The content of an entry. */
typedef struct told {
    const char *source, *destination;
    bool part, done;
    uint64_t from, to, size, source_size, written, crc;
    struct timespec time;
} told;

typedef struct told_list {
    int count;
    told *files;
    double percent, bandwidth;
    int workers;
    uint64_t buffer, id;
    bool checksum;
    const char *base, *private_folder, *slots;
    int slot_count;
} told_list;

/* [+-]digits.nine digits; at most 21 characters before the point, zeros included */
static bool tell_time(const kvtree *entry, struct timespec *time)
{
    const char *text = fuzz_value(entry, "MTIME"), *digits = text;
    uint64_t seconds = 0;
    if (!text) return false;
    bool minus = *digits == '-';
    if (minus || *digits == '+') digits++;
    if (!isdigit((unsigned char)*digits)) return false;
    for (; isdigit((unsigned char)*digits); digits++) {
        if (seconds > (UINT64_MAX - 9) / 10) return false;
        seconds = 10 * seconds + (uint64_t)(*digits - '0');
    }
    if (digits - text > 21) return false;
    if (seconds > (uint64_t)INT64_MAX + minus || *digits++ != '.') return false;
    time->tv_sec = minus ? (time_t)(0 - seconds) : (time_t)seconds;
    time->tv_nsec = 0;
    for (int i = 0; i < 9; i++, digits++) {
        if (!isdigit((unsigned char)*digits)) return false;
        time->tv_nsec = 10 * time->tv_nsec + (*digits - '0');
    }
    return *digits == 0;
}

static bool tell_size(const kvtree *entry, const char *key, uint64_t *size)
{
    return fuzz_number(entry, key, FUZZ_DIGITS, INT64_MAX, size);
}

static bool tell_part(const kvtree *entry, told *t)
{
    t->part =
        kvtree_get(entry, "SOURCE_OFFSET") || kvtree_get(entry, "DESTINATION_OFFSET");
    if (!t->part) return true;
    if (!tell_size(entry, "SOURCE_OFFSET", &t->from) ||
        !tell_size(entry, "DESTINATION_OFFSET", &t->to))
        return false;
    if (kvtree_get(entry, "SOURCE_SIZE") &&
        !tell_size(entry, "SOURCE_SIZE", &t->source_size))
        return false;
    return t->size <= INT64_MAX - t->from && t->size <= INT64_MAX - t->to;
}

static bool tell_progress(const kvtree *entry, bool checksum, told *t)
{
    const char *flag = fuzz_value(entry, "FLAG");
    if (!kvtree_get(entry, "WRITTEN") || !kvtree_get(entry, "MTIME")) return true;
    if (!fuzz_number(entry, "WRITTEN", FUZZ_DIGITS, t->size, &t->written) ||
        !tell_time(entry, &t->time))
        return false;
    if (checksum && !fuzz_number(entry, "CRC", FUZZ_CHECKSUM, UINT32_MAX, &t->crc))
        return false;
    t->done = flag && strcmp(flag, "DONE") == 0;
    return !t->done || t->written == t->size;
}

/* Slashes and dots before a path do not change it. */
static const char *path_of(const char *key)
{
    while (key[0] == '/' && (key[1] == '/' || (key[1] == '.' && key[2] == '/')))
        key += key[1] == '/' ? 1 : 2;
    return key;
}

static bool is_below(const char *folder, const char *path)
{
    const char *rest = folder_rest(folder, path);
    return rest && *rest;
}

static bool tell_folders(const kvtree *tree, told_list *list)
{
    list->base = fuzz_value(tree, "BASE");
    list->private_folder = fuzz_value(tree, "PRIVATE");
    if (kvtree_get(tree, "BASE") && (!list->base || list->base[0] != '/')) return false;
    if (!kvtree_get(tree, "PRIVATE")) return true;
    return list->base && list->private_folder &&
           is_below(list->base, list->private_folder);
}

static bool tell_slots(const kvtree *tree, told_list *list)
{
    list->slots = fuzz_value(tree, "SLOTS");
    if (!kvtree_get(tree, "SLOTS")) return true;
    return list->slots && list->slots[0] == '/' &&
           fuzz_integer(tree, "SLOT_COUNT", 1, AXL_SLOTS_MAX, &list->slot_count);
}

static bool tell_place(const told_list *list, const char *destination)
{
    const char *top = list->private_folder ? list->private_folder : list->base;
    return !top || (is_below(top, destination) &&
                    beneath_check_name(folder_rest(top, destination), NULL) == 0);
}

static bool tell_entry(told_list *list, const kvtree_elem *e)
{
    const kvtree *entry = kvtree_elem_hash(e);
    told *t = &list->files[list->count];
    *t = (told){.source = path_of(kvtree_elem_key(e)),
                .destination = fuzz_value(entry, "DESTINATION")};
    if (t->source[0] != '/' || !t->destination || t->destination[0] != '/' ||
        !tell_place(list, t->destination) || !tell_size(entry, "SIZE", &t->size) ||
        !tell_part(entry, t) || !tell_progress(entry, list->checksum, t))
        return false;
    if (!t->part) t->source_size = t->size;
    for (int i = 0; i < list->count; i++) {
        const told *other = &list->files[i];
        bool apart = t->part && other->part && t->to != other->to;
        if (!apart && strcmp(t->destination, other->destination) == 0) return false;
    }
    list->count++;
    return true;
}

/* A limit is absent, 0, or at least a millionth. */
static bool tell_limit(const kvtree *tree, const char *key, double *limit)
{
    char *end;
    const char *text = fuzz_value(tree, key);
    if (!kvtree_get(tree, key)) return true;
    if (!text || !*text || text[strspn(text, "+-.0123456789eE")]) return false;
    *limit = strtod(text, &end);
    return *end == 0 && (*limit == 0 || (*limit >= 1e-6 && isfinite(*limit)));
}

static bool tell_options(const kvtree *tree, told_list *list)
{
    const char *id = fuzz_value(tree, "ID");
    if (!tell_limit(tree, "PERCENT", &list->percent) ||
        !tell_limit(tree, "BW", &list->bandwidth))
        return false;
    if (kvtree_get(tree, "WORKERS") &&
        !fuzz_integer(tree, "WORKERS", 0, 256, &list->workers))
        return false;
    if (kvtree_get(tree, "BUFFER") &&
        (!fuzz_number(tree, "BUFFER", FUZZ_DIGITS, 1 << 30, &list->buffer) ||
         list->buffer == 0))
        return false;
    list->checksum = kvtree_get(kvtree_get(tree, "OPTIONS"), "CHECKSUM") != NULL;
    if (!kvtree_get(tree, "ID")) return true;
    if (!id || strlen(id) != 16) return false;
    for (; *id; id++) {
        int digit = fuzz_digit(*id, 16);
        if (digit >= 16 || isupper((unsigned char)*id)) return false;
        list->id = list->id << 4 | (uint64_t)digit;
    }
    return true;
}

/* Returns 0, or the error that reading the list must give. */
static int tell(const kvtree *tree, told_list *list)
{
    const kvtree *files = kvtree_get(tree, "FILES");
    if (!files) return -ENODATA;
    list->files = calloc((size_t)kvtree_size(files) + 1, sizeof *list->files);
    REQUIRE(list->files != NULL);
    if (!tell_options(tree, list) || !tell_folders(tree, list) || !tell_slots(tree, list))
        return -EBADMSG;
    for (kvtree_elem *e = kvtree_elem_first(files); e; e = kvtree_elem_next(e))
        if (!tell_entry(list, e)) return -EBADMSG;
    return 0;
}

/* ---- what was read ---- */

static axl_transfer *new_transfer(void)
{
    axl_transfer *t = NULL;
    REQUIRE(axl_create("sync", NULL, &t, NULL) == 0);
    return t;
}

static void require_file(const told *f, const axl_item *item)
{
    REQUIRE(strcmp(item->file.source, f->source) == 0);
    REQUIRE(strcmp(item->file.destination, f->destination) == 0);
    REQUIRE(item->part == f->part && item->from == f->from && item->to == f->to);
    REQUIRE(item->size == f->size && item->source_size == f->source_size);
    REQUIRE(item->begin == f->written && item->synced == f->written);
    REQUIRE(item->begin_crc == f->crc && item->synced_crc == f->crc);
    REQUIRE(item->mtime.tv_sec == f->time.tv_sec);
    REQUIRE(item->mtime.tv_nsec == f->time.tv_nsec);
    REQUIRE(item->file.done == f->done && item->fd == -1 && !item->made);
    REQUIRE(item->file.size == (f->done ? f->size : 0));
    REQUIRE(item->file.crc == (f->done ? f->crc : 0));
}

static void require_text(const char *wanted, const char *found)
{
    REQUIRE(wanted ? found && strcmp(wanted, found) == 0 : !found);
}

static void require_told(const told_list *list, const axl_transfer *t)
{
    require_text(list->base, t->base);
    require_text(list->private_folder, t->private_folder);
    require_text(list->slots, t->slot_path);
    REQUIRE(!list->slots || t->slot_count == list->slot_count);
    REQUIRE(t->count == (size_t)list->count);
    REQUIRE(t->workers == list->workers && t->id == list->id);
    REQUIRE(t->buffer == list->buffer || !list->buffer);
    REQUIRE(fabs(t->percent - list->percent) <= 1e-6);
    REQUIRE(fabs(t->bandwidth - list->bandwidth) <= 1e-6);
    REQUIRE((t->percent > 0) == (list->percent > 0));
    REQUIRE((t->bandwidth > 0) == (list->bandwidth > 0));
    REQUIRE(((t->flags & AXL_CHECKSUM) != 0) == list->checksum);
    for (int i = 0; i < list->count; i++)
        require_file(&list->files[i], &t->items[i]);
}

/* ---- what is written again ---- */

static void require_taken(const axl_transfer *t, const kvtree *state)
{
    size_t i = 0;
    const kvtree *files = kvtree_get(state, "FILES");
    for (kvtree_elem *e = kvtree_elem_first(files); e; e = kvtree_elem_next(e), i++) {
        axl_item item = {.part = t->items[i].part};
        uint64_t written = axl_state_take(t, kvtree_elem_hash(e), &item);
        REQUIRE(written == t->items[i].begin);
        REQUIRE(item.file.done == t->items[i].file.done);
        REQUIRE(item.file.crc == t->items[i].file.crc);
    }
    REQUIRE(i == t->count);
}

static const char *state_path(const char *name)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    return path;
}

/* Writes and reads a file with news: both come back, and the command in the file stays.
 */
static void require_in_file(const told_list *list, kvtree *state, uint32_t hash)
{
    const char *path = state_path("state");
    axl_command command = AXL_COMMAND_RUN;
    hash /= FILES_PART;
    axl_news read, news = {.fresh = hash & 1,
                           .running = hash & 2,
                           .done = hash & 4,
                           .result = hash & 8 ? -(int)(hash >> 4 & 0xfff) : 0,
                           .error = {"some text"}};
    kvtree *back = kvtree_new();
    axl_transfer *t = new_transfer();
    unlink(path);
    REQUIRE(back && axl_state_write(path, state, &news, &command, NULL) == 0);
    REQUIRE(command == AXL_COMMAND_RUN);
    REQUIRE(axl_state_command(path, AXL_COMMAND_EXIT, 1, NULL) == 0);
    REQUIRE(axl_state_write(path, state, &news, &command, NULL) == 0);
    REQUIRE(command == (news.fresh ? AXL_COMMAND_RUN : AXL_COMMAND_EXIT));
    command = AXL_COMMAND_STOP;
    REQUIRE(axl_state_read(path, back, &read, &command, NULL) == 0);
    REQUIRE(command == (news.fresh ? AXL_COMMAND_RUN : AXL_COMMAND_EXIT));
    REQUIRE(read.running == news.running && read.done == news.done);
    REQUIRE(read.result == news.result);
    REQUIRE(strcmp(read.error.text, news.result ? news.error.text : "") == 0);
    axl_news peeked;
    axl_command other;
    REQUIRE(axl_state_peek(path, &peeked, &other) == 0);
    REQUIRE(peeked.running == news.running && other == command);
    REQUIRE(axl_state_fill(t, back, NULL) == 0);
    require_told(list, t);
    kvtree_delete(&back);
    axl_free(t);
}

static void write_again(const told_list *list, const axl_transfer *t, uint32_t hash)
{
    kvtree *state, *again;
    axl_transfer *other = new_transfer();
    REQUIRE(axl_state_build(t, &state) == 0);
    REQUIRE(axl_state_fill(other, state, NULL) == 0);
    require_told(list, other);
    require_taken(other, state);
    REQUIRE(axl_state_build(other, &again) == 0 && fuzz_tree_same(state, again));
    kvtree_delete(&again);
    axl_free(other);
    if (hash % FILES_PART == 0) require_in_file(list, state, hash);
    kvtree_delete(&state);
}

/* ---- the file as it is ---- */

static void read_file(const kvtree *tree)
{
    static const char *const names[] = {"STOP", "RUN", "EXIT"};
    axl_error err = {""};
    const char *told_command = fuzz_value(tree, "COMMAND"), *path = state_path("any");
    kvtree *state = kvtree_new();
    axl_news news;
    axl_command command;
    int code;
    REQUIRE(state && kvtree_write_file(path, tree) == KVTREE_SUCCESS);
    REQUIRE(axl_state_read(path, state, &news, &command, &err) == 0 && !err.text[0]);
    REQUIRE(fuzz_tree_same(tree, state));
    for (int i = 1; i < 3; i++)
        REQUIRE((command == (axl_command)i) ==
                (told_command && strcmp(told_command, names[i]) == 0));
    if (!fuzz_integer(tree, "CODE", 0, 0, &code)) REQUIRE(news.result <= 0);
    REQUIRE(strnlen(news.error.text, sizeof news.error.text) < sizeof news.error.text);
    kvtree_delete(&state);
}

/* ---- */

static void without_memory(const kvtree *tree, uint32_t hash, int expected, size_t calls)
{
    axl_error err = {""};
    axl_transfer *t = new_transfer();
    fuzz_memory_begin(hash % (calls + 1));
    int rc = axl_state_fill(t, tree, &err);
    fuzz_memory_end();
    REQUIRE(rc == -ENOMEM || rc == expected);
    REQUIRE((rc == 0) == (err.text[0] == 0));
    axl_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_copy(data, size);
    axl_error err = {""};
    uint32_t hash = fuzz_hash(data, size);
    kvtree *tree = fuzz_tree(text, size);
    told_list list = {0};
    int expected = tell(tree, &list);
    axl_transfer *t = new_transfer();
    fuzz_memory_begin(SIZE_MAX);
    int rc = axl_state_fill(t, tree, &err);
    struct fuzz_memory memory = fuzz_memory_end();
    REQUIRE(memory.bytes <=
            FILL_BYTES_PER_BYTE * kvtree_pack_size(tree) + FILL_BYTES_MORE);
    REQUIRE(rc == expected && (rc == 0) == (err.text[0] == 0));
    REQUIRE(strnlen(err.text, sizeof err.text) < sizeof err.text);
    if (rc == 0) {
        require_told(&list, t);
        write_again(&list, t, hash);
    }
    without_memory(tree, hash, rc, memory.calls);
    if (hash % FILES_PART == 0) read_file(tree);
    axl_free(t);
    kvtree_delete(&tree);
    free(list.files);
    free(text);
    return 0;
}
