/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of hosts; see hostlist.h. */
#include "lib/hostlist.h"

#include "common/array.h"
#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <kvtree/kvtree.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 18 }; /* of a number, so that each number fits into 64 bits */

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "0123456789-_.";
static const char digits[] = "0123456789";

static void hostlist_truncate(hostlist *list, int count)
{
    while (list->count > count)
        free(list->names[--list->count]);
}

void hostlist_done(hostlist *list)
{
    hostlist_truncate(list, 0);
    free(list->names);
    list->names = NULL;
}

/* Adds a name and takes ownership of it. A NULL name (no memory) is -ENOMEM. */
static int hostlist_add(hostlist *list, char *name)
{
    char **names = array_grow(list->names, (size_t)list->count, sizeof *names);
    if (names) list->names = names;
    if (!name || !names) {
        free(name);
        return -ENOMEM;
    }
    names[list->count++] = name;
    return 0;
}

/* ---- parse ---- */

struct parser {
    const char *text, *at;
    hostlist *list;
    kvtree_error *err;
    char name[HOSTLIST_NAME_SIZE]; /* of the current item, as far as it is parsed */
};

static int hostlist_fail(const struct parser *p, const char *at, const char *what)
{
    return err_set(p->err, -EINVAL, "hosts \"%.100s\": %s at byte %zu", p->text, what,
                   (size_t)(at - p->text) + 1);
}

typedef struct range {
    uint64_t from, to;
    int width; /* minimum number of digits */
} range;

/* Parses the number at *at and moves *at behind it. Returns the number of digits; 0:
 * there is no valid number. */
static size_t hostlist_parse_number(const char **at, uint64_t *number)
{
    size_t n = strspn(*at, digits);
    if (n == 0 || n > DIGITS) return 0;
    *number = strtoull(*at, NULL, 10);
    *at += n;
    return n;
}

static int hostlist_parse_range(const struct parser *p, const char **at, range *r)
{
    const char *first = *at;
    size_t n = hostlist_parse_number(at, &r->from);
    if (n == 0) return hostlist_fail(p, first, "no number of at most 18 digits");
    r->width = n > 1 && *first == '0' ? (int)n : 0;
    r->to = r->from;
    if (**at != '-') return 0;
    const char *second = ++*at;
    if (hostlist_parse_number(at, &r->to) == 0)
        return hostlist_fail(p, second, "no number of at most 18 digits");
    if (r->to < r->from) return hostlist_fail(p, first, "a range that goes down");
    return 0;
}

static int hostlist_parse_rest(struct parser *p, const char *at, size_t length);

/* Expands each number of the range; behind is the text after the closing bracket. */
static int hostlist_expand_range(struct parser *p, const range *r, const char *behind,
                                 size_t length)
{
    for (uint64_t i = r->from;; i++) {
        size_t space = sizeof p->name - length;
        int n =
            snprintf(p->name + length, space, "%0*llu", r->width, (unsigned long long)i);
        if (n < 0 || (size_t)n >= space)
            return hostlist_fail(p, behind, "a name too long");
        int rc = hostlist_parse_rest(p, behind, length + (size_t)n);
        if (rc || i == r->to) return rc;
    }
}

/* Expands the brackets; at is behind '['. The whole bracket is checked before any of it
 * is expanded. */
static int hostlist_expand_brackets(struct parser *p, const char *at, size_t length)
{
    const char *first = at, *behind;
    range r;
    int rc;
    do
        if ((rc = hostlist_parse_range(p, &at, &r)) != 0) return rc;
    while (*at++ == ',');
    if (at[-1] != ']') return hostlist_fail(p, at - 1, "a bracket without its end");
    behind = at;
    at = first;
    do {
        if ((rc = hostlist_parse_range(p, &at, &r)) != 0) return rc;
        if ((rc = hostlist_expand_range(p, &r, behind, length)) != 0) return rc;
    } while (*at++ == ',');
    return 0;
}

static int hostlist_end_item(struct parser *p, const char *at, size_t length)
{
    if (*at && !strchr(", \t\n", *at))
        return hostlist_fail(p, at, "no character of a name");
    if (length == 0) return hostlist_fail(p, at, "a name is missing");
    if (p->list->count >= HOSTLIST_MAX)
        return err_set(p->err, -E2BIG, "hosts \"%.100s\": more than %d", p->text,
                       HOSTLIST_MAX);
    p->at = at;
    return hostlist_add(p->list, strdup(p->name)) ? err_set(p->err, -ENOMEM, "no memory")
                                                  : 0;
}

/* Parses the rest of an item from at; length bytes of its name are known. Recursion is as
 * deep as the item has brackets; each bracket adds at least one byte to the name. */
static int hostlist_parse_rest(struct parser *p, const char *at, size_t length)
{
    size_t n = strspn(at, letters);
    if (length + n >= sizeof p->name) return hostlist_fail(p, at, "a name too long");
    if (length == 0 && *at == '-') return hostlist_fail(p, at, "no character of a name");
    memcpy(p->name + length, at, n);
    length += n;
    p->name[length] = 0;
    at += n;
    return *at == '[' ? hostlist_expand_brackets(p, at + 1, length)
                      : hostlist_end_item(p, at, length);
}

int hostlist_parse(const char *text, hostlist *list, kvtree_error *err)
{
    struct parser p = {.text = text, .at = text, .list = list, .err = err};
    int before = list->count, rc = 0;
    p.at += strspn(p.at, " \t\n");
    while (!rc && *p.at) {
        rc = hostlist_parse_rest(&p, p.at, 0);
        if (rc) break;
        /* one comma, which may have blanks around it, or blanks alone */
        p.at += strspn(p.at, " \t\n");
        if (*p.at != ',') continue;
        p.at += 1 + strspn(p.at + 1, " \t\n");
        if (!*p.at) rc = hostlist_fail(&p, p.at, "a name is missing");
    }
    if (rc) hostlist_truncate(list, before);
    return rc;
}

/* ---- compress ---- */

/* A name, split into text, number, text. A name without a number is all first text. */
typedef struct host {
    const char *name;
    size_t before, end; /* bounds of the number */
    uint64_t number;
    int width; /* digits of a number with leading zeros; otherwise 0 */
} host;

static host hostlist_split_name(const char *name)
{
    size_t end = strlen(name), before;
    host h = {.name = name, .before = end, .end = end};
    while (end > 0 && !strchr(digits, name[end - 1]))
        end--;
    before = end;
    while (before > 0 && strchr(digits, name[before - 1]))
        before--;
    if (before == end || end - before > DIGITS) return h;
    h.before = before;
    h.end = end;
    h.number = strtoull(name + before, NULL, 10);
    h.width = name[before] == '0' && end - before > 1 ? (int)(end - before) : 0;
    return h;
}

/* Compares the texts around the numbers; 0: both names can share a pair of brackets. */
static int hostlist_compare_outside(const host *a, const host *b)
{
    size_t n = a->before < b->before ? a->before : b->before;
    int differ = memcmp(a->name, b->name, n);
    if (!differ) differ = (a->before > b->before) - (a->before < b->before);
    if (!differ) differ = strcmp(a->name + a->end, b->name + b->end);
    /* a name without a number never shares brackets */
    return differ ? differ : (a->before < a->end) - (b->before < b->end);
}

static int hostlist_compare(const void *x, const void *y)
{
    const host *a = x, *b = y;
    int differ = hostlist_compare_outside(a, b);
    if (differ) return differ;
    if (a->number != b->number) return a->number < b->number ? -1 : 1;
    return a->width - b->width;
}

/* Returns the length of the range that begins at host i: each number is the previous one
 * plus 1, written with the width of the first. */
static int hostlist_range_length(const host *hosts, int count, int i)
{
    int n = 1;
    for (; i + n < count; n++) {
        const host *h = &hosts[i + n];
        char text[DIGITS + 3];
        snprintf(text, sizeof text, "%0*llu", hosts[i].width,
                 (unsigned long long)(hosts[i].number + (uint64_t)n));
        if (strlen(text) != h->end - h->before ||
            memcmp(text, h->name + h->before, strlen(text)) != 0)
            break;
    }
    return n;
}

/* Writes count hosts that differ only in their numbers. */
static void hostlist_put_group(FILE *out, const host *hosts, int count)
{
    fprintf(out, "%.*s%s", (int)hosts->before, hosts->name, count > 1 ? "[" : "");
    for (int i = 0, n; i < count; i += n) {
        const host *h = &hosts[i], *last;
        n = hostlist_range_length(hosts, count, i);
        last = &hosts[i + n - 1];
        fprintf(out, "%s%.*s", i ? "," : "", (int)(h->end - h->before),
                h->name + h->before);
        if (n > 1)
            fprintf(out, "-%.*s", (int)(last->end - last->before),
                    last->name + last->before);
    }
    fprintf(out, "%s%s", count > 1 ? "]" : "", hosts->name + hosts->end);
}

static int hostlist_group_length(const host *hosts, int count)
{
    int n = 1;
    if (hosts->before == hosts->end) return 1; /* no number, no brackets */
    while (n < count && hostlist_compare_outside(hosts, &hosts[n]) == 0)
        n++;
    return n;
}

char *hostlist_compress(const hostlist *list)
{
    char *text = NULL;
    size_t size;
    host *hosts = calloc((size_t)list->count + 1, sizeof *hosts);
    FILE *out = hosts ? open_memstream(&text, &size) : NULL;
    if (!out) {
        free(hosts);
        return NULL;
    }
    for (int i = 0; i < list->count; i++)
        hosts[i] = hostlist_split_name(list->names[i]);
    qsort(hosts, (size_t)list->count, sizeof *hosts, hostlist_compare);
    for (int i = 0, n; i < list->count; i += n) {
        n = hostlist_group_length(hosts + i, list->count - i);
        if (i) fputc(',', out);
        hostlist_put_group(out, hosts + i, n);
    }
    free(hosts);
    return io_text_end(out, &text);
}

/* ---- sets ---- */

/* Returns a tree with the names as keys; NULL without memory. */
static kvtree *hostlist_set_of(const hostlist *list)
{
    kvtree *set = kvtree_new();
    for (int i = 0; set && i < list->count; i++)
        if (!kvtree_set(set, list->names[i], NULL)) kvtree_delete(&set);
    return set;
}

/* Adds the hosts of a that are in b (inside 1) or not in b (inside 0). */
static int hostlist_filter(const hostlist *a, const hostlist *b, int inside,
                           hostlist *result)
{
    kvtree *set = hostlist_set_of(b);
    int rc = set ? 0 : -ENOMEM;
    for (int i = 0; !rc && i < a->count; i++)
        if ((kvtree_get(set, a->names[i]) != NULL) == inside)
            rc = hostlist_add(result, strdup(a->names[i]));
    kvtree_delete(&set);
    return rc;
}

int hostlist_minus(const hostlist *a, const hostlist *b, hostlist *result)
{
    return hostlist_filter(a, b, 0, result);
}

int hostlist_intersect(const hostlist *a, const hostlist *b, hostlist *result)
{
    return hostlist_filter(a, b, 1, result);
}

int hostlist_unite(const hostlist *a, const hostlist *b, hostlist *result)
{
    static const hostlist nothing = {0, NULL};
    int rc = hostlist_filter(a, &nothing, 0, result);
    return rc ? rc : hostlist_filter(b, a, 0, result);
}

int hostlist_once(const hostlist *list, hostlist *result)
{
    kvtree *seen = kvtree_new();
    int rc = seen ? 0 : -ENOMEM;
    for (int i = 0; !rc && i < list->count; i++) {
        if (kvtree_get(seen, list->names[i])) continue;
        if (!kvtree_set(seen, list->names[i], NULL)) rc = -ENOMEM;
        if (!rc) rc = hostlist_add(result, strdup(list->names[i]));
    }
    kvtree_delete(&seen);
    return rc;
}
