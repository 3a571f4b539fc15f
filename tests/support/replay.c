/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a fuzz target without a fuzzer: on each named file, or each file of a named
 * directory, and on damaged versions of it, which are the same in every run: truncated at
 * each byte; each byte with one bit flipped, incremented, set to zero, and swapped with
 * the next one. Of large files and directories only every n-th byte is damaged, so that
 * the run takes seconds.
 *
 * usage: fuzz_NAME FILE_OR_FOLDER...
 *
 * If the target fails, the input is reported: the file, its damage, and its bytes for xxd
 * -r -p. */
#include "fuzz.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KINDS 5
#define RUNS_MOST 20000
#define BYTES_SHOWN 4096

static const char *const kinds[KINDS] = {"cut off at", "one bit turned in", "counted up",
                                         "zero", "swapped with the next:"};

/* The current input of the target. */
static struct {
    const char *file, *kind;
    size_t byte, size;
    const unsigned char *bytes;
} now;

/* Prints text; calls only functions that are allowed in a signal handler. */
static void say(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0) _exit(1);
}

static void tell_input(int signal)
{
    char digits[24] = {0}, *digit = digits + sizeof digits - 1;
    size_t byte = now.byte;
    do
        *--digit = (char)('0' + byte % 10);
    while (byte /= 10);
    say("input: ");
    say(now.file);
    if (now.kind) {
        say(", ");
        say(now.kind);
        say(" byte ");
        say(digit);
    }
    say("\n");
    for (size_t i = 0; i < now.size && i < BYTES_SHOWN; i++) {
        const char *hex = "0123456789abcdef";
        char pair[3] = {hex[now.bytes[i] >> 4], hex[now.bytes[i] & 15], 0};
        say(pair);
    }
    say(now.size > BYTES_SHOWN ? "... (more)\n" : "\n");
    /* the handler was installed for one signal: this time the signal ends the program */
    raise(signal);
}

/* Installs the handler. A sanitizer handles a second signal itself, and then aborts. */
static void watch(void)
{
    struct sigaction action = {.sa_handler = tell_input, .sa_flags = (int)SA_RESETHAND},
                     before;
    sigaction(SIGABRT, &action, NULL);
    sigaction(SIGSEGV, NULL, &before);
    if (before.sa_handler == SIG_DFL) sigaction(SIGSEGV, &action, NULL);
}

/* ---- the files ---- */

struct files {
    char **paths;
    size_t count, bytes; /* of all files */
};

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add(struct files *files, const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) return;
    files->paths = realloc(files->paths, (files->count + 1) * sizeof *files->paths);
    REQUIRE(files->paths != NULL);
    files->paths[files->count++] = strdup(path);
    files->bytes += (size_t)st.st_size;
}

static void collect(struct files *files, const char *path)
{
    DIR *dir = opendir(path);
    if (!dir) {
        add(files, path);
        return;
    }
    for (struct dirent *entry; (entry = readdir(dir));) {
        char inside[4096];
        int size = snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name);
        REQUIRE(size > 0 && (size_t)size < sizeof inside);
        add(files, inside);
    }
    closedir(dir);
}

static unsigned char *load(const char *path, size_t *size)
{
    FILE *file = fopen(path, "r");
    REQUIRE(file != NULL);
    REQUIRE(fseek(file, 0, SEEK_END) == 0);
    *size = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(*size + 1);
    REQUIRE(bytes != NULL);
    REQUIRE(fread(bytes, 1, *size, file) == *size);
    fclose(file);
    return bytes;
}

/* ---- the runs ---- */

static void run(const unsigned char *bytes, size_t size)
{
    now.bytes = bytes;
    now.size = size;
    LLVMFuzzerTestOneInput(bytes, size);
}

static void run_damaged(unsigned char *bytes, size_t size, size_t byte, int kind)
{
    unsigned char before = bytes[byte], after = byte + 1 < size ? bytes[byte + 1] : 0;
    if (kind == 1) bytes[byte] ^= (unsigned char)(1 << byte % 8);
    if (kind == 2) bytes[byte]++;
    if (kind == 3) bytes[byte] = 0;
    if (kind == 4 && byte + 1 < size) {
        bytes[byte] = after;
        bytes[byte + 1] = before;
    }
    run(bytes, kind == 0 ? byte : size);
    bytes[byte] = before;
    if (byte + 1 < size) bytes[byte + 1] = after;
}

static size_t replay(const char *path, size_t step)
{
    size_t size, runs = 1;
    unsigned char *bytes = load(path, &size);
    now.file = path;
    now.kind = NULL;
    run(bytes, size);
    for (size_t byte = 0; byte < size; byte += step)
        for (int kind = 0; kind < KINDS; kind++, runs++) {
            now.byte = byte;
            now.kind = kinds[kind];
            run_damaged(bytes, size, byte, kind);
        }
    free(bytes);
    return runs;
}

int main(int argc, char **argv)
{
    struct files files = {0};
    size_t runs = 0;
    for (int i = 1; i < argc; i++)
        collect(&files, argv[i]);
    if (files.count == 0) {
        fprintf(stderr, "usage: %s FILE_OR_FOLDER...; there are no files\n", argv[0]);
        return 1;
    }
    qsort(files.paths, files.count, sizeof *files.paths, by_name);
    watch();
    for (size_t i = 0; i < files.count; i++)
        runs += replay(files.paths[i], 1 + KINDS * files.bytes / RUNS_MOST);
    printf("%zu inputs from %zu files\n", runs, files.count);
    for (size_t i = 0; i < files.count; i++)
        free(files.paths[i]);
    free(files.paths);
    return 0;
}
