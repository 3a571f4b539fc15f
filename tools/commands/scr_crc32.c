/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_crc32: prints checksums of files as SCR records them. */
#include "common/crc32.h"
#include "common/io.h"
#include "lib/tool.h"
#include "lib/tool_table.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER = 1 << 20 };

typedef struct sum {
    uint32_t crc;
    uint64_t size;
} sum;

/* Computes the checksum of an open file. 0 or -errno. */
static int crc32_sum(int fd, char *buffer, sum *s)
{
    ssize_t n;
    *s = (sum){0, 0};
    while ((n = io_read(fd, buffer, BUFFER)) > 0) {
        s->crc = crc32_add(s->crc, buffer, (size_t)n);
        s->size += (uint64_t)n;
    }
    return (int)n;
}

/* Opens a regular file. The user of a directory may put a pipe there, at which root would
 * wait, or a link to a device, which acts when it is opened. */
static int crc32_open(const char *name)
{
    char path[64];
    struct stat st;
    int found = io_open(AT_FDCWD, name, O_PATH | O_CLOEXEC, 0);
    if (found < 0) return found;
    int rc = fstat(found, &st) != 0 ? -errno : S_ISDIR(st.st_mode) ? -EISDIR : 0;
    if (!rc && !S_ISREG(st.st_mode)) rc = -EINVAL;
    snprintf(path, sizeof path, "/proc/self/fd/%d", found);
    if (!rc) rc = io_open(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    io_close(&found);
    return rc;
}

static int crc32_sum_file(const char *name, char *buffer, sum *s)
{
    if (strcmp(name, "-") == 0) return crc32_sum(STDIN_FILENO, buffer, s);
    int fd = crc32_open(name);
    if (fd < 0) return fd;
    int rc = crc32_sum(fd, buffer, s);
    io_close(&fd);
    return rc;
}

static int crc32_print_json(const char *name, const char *crc, uint64_t size)
{
    static const tool_column columns[] = {{"file", "FILE", TOOL_TEXT},
                                          {"crc32", "CRC32", TOOL_TEXT},
                                          {"size", "SIZE", TOOL_NUMBER}};
    tool_table *table = tool_table_new(columns, 3);
    tool_table_text(table, name);
    tool_table_text(table, crc);
    tool_table_number(table, (int64_t)size);
    return tool_table_print(table, TOOL_JSON);
}

/* Prints the checksum of a file; an exit code. */
static int crc32_print(const char *name, char *buffer, int json)
{
    char crc[16];
    sum s;
    int rc = crc32_sum_file(name, buffer, &s);
    if (rc == -EINVAL) return tool_say(FILE_UNREADABLE, "%s is not a regular file", name);
    if (rc) return tool_say(FILE_UNREADABLE, "%s: %s", name, strerror(-rc));
    snprintf(crc, sizeof crc, "0x%08" PRIx32, s.crc);
    if (json) return crc32_print_json(name, crc, s.size);
    printf("%s  ", crc);
    tool_print(name);
    printf("\n");
    return COMMAND_GOOD;
}

int main(int argc, char **argv)
{
    int json = 0;
    const tool_option options[] = {
        {'j', "json", NULL, "print a JSON object per file", .flag = &json}, {0}};
    const tool t = {.arguments = "[OPTION]... FILE...",
                    .about = "Prints the CRC32 of each FILE, which is a regular file, as "
                             "SCR records it. '-' is\nstandard input.\n",
                    .codes = "0 done, 1 a file cannot be read, 2 wrong usage.\n",
                    .options = options,
                    .least = 1,
                    .most = -1};
    tool_args args;
    int code = tool_start(&t, argc, argv, &args);
    if (code >= 0) return code;
    if (command_names(t.arguments, args.count, args.list) != COMMAND_GOOD)
        return COMMAND_WRONG_USAGE;
    char *buffer = io_buffer(BUFFER);
    code = buffer ? COMMAND_GOOD : tool_no_memory();
    for (int i = 0; buffer && i < args.count; i++)
        if (crc32_print(args.list[i], buffer, json) != COMMAND_GOOD) code = COMMAND_BAD;
    free(buffer);
    return tool_finish(code);
}
