/* SPDX-License-Identifier: BSD-3-Clause */
/* Any text as a list of hosts. It is accepted exactly when another reader says so, which
 * builds the list from left to right, name by name, and stands for the same names. The
 * short form stands for the same names, sorted, and is its own short form. When memory
 * ends, nothing is left of the list. */
#include "fuzz.h"
#include "lib/hostlist.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longer lists are only seen to be bounded. */
#define MOST 2000

/* ---- the other reader ---- */

/* Beginnings of names; count -1: no list, MOST + 1: too many to compare. */
struct names {
    int count;
    char *list[MOST];
};

static void give_up(struct names *n, int count)
{
    for (int i = 0; i < n->count && n->count <= MOST; i++)
        free(n->list[i]);
    n->count = count;
}

/* Takes over name. */
static void keep(struct names *n, char *name)
{
    if (n->count >= 0 && n->count < MOST) {
        n->list[n->count++] = name;
        return;
    }
    if (n->count == MOST) give_up(n, MOST + 1);
    free(name);
}

/* Each beginning in n is followed by each of the count ends. */
static void multiply(struct names *n, char *const *ends, int count)
{
    struct names old = *n;
    n->count = 0;
    for (int i = 0; i < old.count && old.count <= MOST; i++) {
        for (int k = 0; k < count && n->count <= MOST; k++) {
            char *name = malloc(strlen(old.list[i]) + strlen(ends[k]) + 1);
            keep(n, strcat(strcpy(name, old.list[i]), ends[k]));
        }
        free(old.list[i]);
    }
    if (old.count > MOST) n->count = old.count;
}

/* Reads "5" or "5-7" at *at; 0 if it is neither. */
static int read_range(const char **at, unsigned long long ends[2], int *width)
{
    for (int i = 0; i < 2; i++) {
        int digits = 0;
        unsigned long long value = 0;
        for (; isdigit((unsigned char)**at); ++*at, digits++)
            if (digits < 18) value = value * 10 + (unsigned long long)(**at - '0');
        if (digits < 1 || digits > 18) return 0;
        ends[i] = value;
        if (i == 0) {
            ends[1] = value;
            *width = (*at)[-digits] == '0' && digits > 1 ? digits : 0;
            if (**at != '-') return 1;
            ++*at;
        }
    }
    return ends[0] <= ends[1];
}

/* The numbers in brackets; *at is behind the first one, and then behind the last one. 0
 * for a mistake. */
static int read_brackets(const char **at, struct names *numbers)
{
    for (;;) {
        unsigned long long ends[2];
        int width;
        if (!read_range(at, ends, &width)) return 0;
        for (unsigned long long i = ends[0]; i <= ends[1] && numbers->count <= MOST;
             i++) {
            char text[32];
            snprintf(text, sizeof text, "%0*llu", width, i);
            keep(numbers, strdup(text));
        }
        if (**at == ']') return ++*at != NULL;
        if (**at != ',') return 0;
        ++*at;
    }
}

/* One item; its names go to n; 0 for a mistake. */
static int read_item(const char **at, struct names *n)
{
    const char *first = *at;
    keep(n, strdup(""));
    while (**at && !strchr(", \t\n", **at)) {
        struct names ends = {0, {NULL}};
        if (**at == '[') {
            ++*at;
            if (!read_brackets(at, &ends)) {
                give_up(&ends, 0);
                return 0;
            }
        } else {
            char letter[2] = {**at, 0};
            if (!isalnum((unsigned char)**at) && !strchr("-_.", **at)) return 0;
            if (*at == first && **at == '-') return 0;
            ++*at;
            keep(&ends, strdup(letter));
        }
        if (ends.count > MOST)
            give_up(n, MOST + 1);
        else
            multiply(n, ends.list, ends.count);
        give_up(&ends, 0);
    }
    return *at > first;
}

static void skip_blanks(const char **at)
{
    while (**at && strchr(" \t\n", **at))
        ++*at;
}

static void read_all(const char *at, struct names *n)
{
    int good = 1, comma = 0;
    skip_blanks(&at);
    while (good && (*at || comma)) {
        struct names item = {0, {NULL}};
        good = read_item(&at, &item);
        if (item.count > MOST || n->count > MOST)
            give_up(n, MOST + 1);
        else
            for (int i = 0; i < item.count; i++)
                keep(n, strdup(item.list[i]));
        give_up(&item, 0);
        skip_blanks(&at);
        comma = *at == ',';
        if (comma) at++;
        skip_blanks(&at);
    }
    for (int i = 0; good && i < n->count && n->count <= MOST; i++)
        good = strlen(n->list[i]) < HOSTLIST_NAME_SIZE;
    if (!good) give_up(n, -1);
}

/* ---- what must hold ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Neither order nor anything else but the names counts. */
static void check_same(hostlist *a, hostlist *b)
{
    REQUIRE(a->count == b->count);
    if (a->count == 0) return;
    qsort(a->names, (size_t)a->count, sizeof *a->names, compare_names);
    qsort(b->names, (size_t)b->count, sizeof *b->names, compare_names);
    for (int i = 0; i < a->count; i++)
        REQUIRE(strcmp(a->names[i], b->names[i]) == 0);
}

static void check_short_form(hostlist *list)
{
    hostlist again = {0, NULL};
    char *text = hostlist_compress(list);
    REQUIRE(text && hostlist_parse(text, &again, NULL) == 0);
    char *same = hostlist_compress(&again);
    REQUIRE(same && strcmp(text, same) == 0);
    check_same(list, &again);
    hostlist_done(&again);
    free(same);
    free(text);
}

static void check_without_memory(const char *text)
{
    for (size_t calls = 0; calls < 40; calls += 1 + calls / 4) {
        hostlist list = {0, NULL};
        fuzz_memory_begin(calls);
        int rc = hostlist_parse(text, &list, NULL);
        char *shortest = rc ? NULL : hostlist_compress(&list);
        fuzz_memory_end();
        REQUIRE(rc == 0 || list.count == 0);
        free(shortest);
        hostlist_done(&list);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct names expected; /* too large for the stack of a fuzzer */
    char *text = malloc(size + 1);
    hostlist list = {0, NULL};
    memcpy(text, data, size);
    text[size] = 0;
    expected.count = 0;
    read_all(text, &expected);
    int rc = hostlist_parse(text, &list, NULL);
    REQUIRE(rc == 0 || list.count == 0);
    REQUIRE(list.count <= HOSTLIST_MAX);
    if (expected.count <= MOST) {
        REQUIRE((rc == 0) == (expected.count >= 0));
        REQUIRE(rc != 0 || list.count == expected.count);
        for (int i = 0; i < list.count; i++)
            REQUIRE(strcmp(list.names[i], expected.list[i]) == 0);
        if (rc == 0) check_short_form(&list);
        check_without_memory(text);
    }
    give_up(&expected, 0);
    hostlist_done(&list);
    free(text);
    return 0;
}
