/* SPDX-License-Identifier: BSD-3-Clause */
/* probe: an MPI program that executes its arguments as operations of SCR,
 *
 *     mpiexec -n 4 ./probe init start:a:c put:a/f_%r:1000 complete:1 finalize
 *
 * and prints a line of JSON for each, with the results of all ranks:
 *
 *     {"op": "complete:1", "code": [0, 0, 0, 0]}
 *
 * An operation is VERB, VERB:ARGUMENT, or VERB@RANKS:ARGUMENT for a call that is not
 * collective and made only on the listed ranks (1,3). In arguments %r is the rank, %T the
 * dataset, %L<n> n letters x, %N is NULL, and "a||b" is a on rank 0 and b on the others.
 * If the first operation is "bare", MPI is never started. After "mpi_end" every rank
 * prints for itself, with its number under "late" and null for the others. Exit code 3: a
 * collective call had different results on the ranks, or the script was wrong. */
#include "probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading an operation ---- */

static void expand(const char *from, const struct probe *p, char to[PROBE_TEXT])
{
    size_t n = 0;
    while (*from && n < PROBE_TEXT - 16) {
        if (strncmp(from, "%r", 2) == 0) {
            n += (size_t)snprintf(to + n, PROBE_TEXT - n, "%d", p->rank);
            from += 2;
        } else if (strncmp(from, "%T", 2) == 0) {
            n += (size_t)snprintf(to + n, PROBE_TEXT - n, "%.200s", p->tag);
            from += 2;
        } else if (strncmp(from, "%L", 2) == 0) {
            char *end;
            long count = strtol(from + 2, &end, 10);
            for (; count > 0 && n < PROBE_TEXT - 16; count--)
                to[n++] = 'x';
            from = end;
        } else {
            to[n++] = *from++;
        }
    }
    to[n] = 0;
}

static int is_listed(const char *list, int rank)
{
    while (list && *list) {
        char *end;
        if (strtol(list, &end, 10) == rank) return 1;
        list = *end == ',' ? end + 1 : "";
    }
    return 0;
}

/* Cuts the text for this rank from arg, "first||second||third"; the last text is for all
 * further ranks. */
static const char *choose(const char *arg, int rank, char mine[PROBE_TEXT])
{
    const char *end;
    while ((end = strstr(arg, "||")) && rank-- > 0)
        arg = end + 2;
    snprintf(mine, PROBE_TEXT, "%.*s", end ? (int)(end - arg) : PROBE_TEXT - 1, arg);
    return mine;
}

/* Runs one operation on this rank. NULL: there is no such verb. */
static const struct verb *run(struct probe *p, const char *operation, struct result *r)
{
    char verb_name[PROBE_TEXT], mine[PROBE_TEXT], arg[PROBE_TEXT];
    const char *colon = strchr(operation, ':');
    expand(choose(colon ? colon + 1 : "", p->rank, mine), p, arg);
    snprintf(verb_name, sizeof verb_name, "%.*s",
             (int)(colon ? colon - operation : PROBE_TEXT - 1), operation);
    char *ranks = strchr(verb_name, '@');
    if (ranks) *ranks++ = 0;
    const struct verb *verb = probe_verb(verb_name);
    memset(r, 0, sizeof *r);
    if (!verb || (verb->collective && ranks)) return NULL;
    r->here = !ranks || is_listed(ranks, p->rank);
    if (r->here) verb->run(p, arg, r);
    return verb;
}

/* ---- printing ---- */

static void print_text(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 0x20 || c == '"' || c == '\\')
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

enum part { CODE, FLAG, TEXT };

static void print_part(enum part part, const struct result *r)
{
    if (!r->here || (part == FLAG && !r->has_flag) || (part == TEXT && !r->has_text))
        printf("null");
    else if (part == TEXT)
        print_text(r->text);
    else
        printf("%d", part == CODE ? r->code : r->flag);
}

static void print(const char *operation, const struct probe *p, const struct result *all)
{
    static const char *const names[] = {"code", "flag", "text"};
    int ranks = p->ranks;
    printf("{\"op\": ");
    print_text(operation);
    if (p->ended) printf(", \"late\": %d", p->rank);
    for (enum part part = CODE; part <= TEXT; part++) {
        int any = part == CODE;
        for (int i = 0; i < ranks; i++)
            any = any || (part == FLAG ? all[i].has_flag : all[i].has_text);
        if (!any) continue;
        printf(", \"%s\": [", names[part]);
        for (int i = 0; i < ranks; i++) {
            if (i) printf(", ");
            print_part(part, &all[i]);
        }
        putchar(']');
    }
    printf("}\n");
    fflush(stdout);
}

static int are_same(int ranks, const struct result *all)
{
    for (int i = 1; i < ranks; i++)
        if (memcmp(&all[i], &all[0], sizeof *all) != 0) return 0;
    return 1;
}

/* ---- the script ---- */

/* Collects the results of all ranks on rank 0, or that of this rank if ranks cannot
 * communicate. */
static void collect(const struct probe *p, int bare, const struct result *mine,
                    struct result *all)
{
    if (!bare && !p->ended) {
        MPI_Gather(mine, sizeof *mine, MPI_BYTE, all, sizeof *mine, MPI_BYTE, 0,
                   MPI_COMM_WORLD);
        return;
    }
    memset(all, 0, (size_t)p->ranks * sizeof *all);
    all[p->rank] = *mine;
}

static int play(struct probe *p, int count, char **operations, int bare)
{
    int bad = 0;
    struct result mine, *all = calloc((size_t)p->ranks, sizeof *all);
    if (!all) return 3;
    for (int i = 0; i < count; i++) {
        const struct verb *verb = run(p, operations[i], &mine);
        collect(p, bare, &mine, all);
        if (p->rank == 0 || p->ended) print(operations[i], p, all);
        int compared = p->rank == 0 && !p->ended && verb && verb->collective;
        int wrong = !verb || (compared && !are_same(p->ranks, all));
        if (wrong && p->rank == 0)
            fprintf(stderr, "probe: %s: %s\n", operations[i],
                    verb ? "not the same on all ranks" : "no such operation");
        bad = bad || wrong;
    }
    free(all);
    return bad ? 3 : 0;
}

/* Checks that MPI has been finalized if SCR ends the process. */
static void look_at_mpi(void)
{
    int ended;
    MPI_Finalized(&ended);
    if (!ended) fprintf(stderr, "probe: MPI_Finalize was not called\n");
}

int main(int argc, char **argv)
{
    static struct probe p = {.ranks = 1};
    int bare = argc > 1 && strcmp(argv[1], "bare") == 0;
    if (!bare) {
        MPI_Init(&argc, &argv);
        atexit(look_at_mpi);
        MPI_Comm_rank(MPI_COMM_WORLD, &p.rank);
        MPI_Comm_size(MPI_COMM_WORLD, &p.ranks);
    }
    int code = play(&p, argc - 1, argv + 1, bare);
    if (!bare && !p.ended) MPI_Finalize();
    return code;
}
