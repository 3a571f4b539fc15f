/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations of a probe's script. Outputs are set to impossible values before each
 * call, which shows outputs that the call did not set. */
#include "probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <scr.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNTOUCHED "(untouched)"

static void say(struct result *r, const char *text)
{
    r->has_text = 1;
    snprintf(r->text, sizeof r->text, "%s", text);
}

static void set(char to[PROBE_TEXT], const char *text)
{
    snprintf(to, PROBE_TEXT, "%s", text ? text : "");
}

/* "%N" is NULL. */
static const char *or_null(const char *arg)
{
    return strcmp(arg, "%N") == 0 ? NULL : arg;
}

/* Returns the text after the last colon of arg, and the text before it in first; rest if
 * there is no colon. */
static const char *split(const char *arg, char first[PROBE_TEXT], const char *rest)
{
    set(first, arg);
    char *colon = strrchr(first, ':');
    if (!colon) return rest;
    *colon = 0;
    return arg + (colon - first) + 1;
}

/* ---- begin and end ---- */

static void init(struct probe *p, const char *arg, struct result *r)
{
    r->code = SCR_Init();
}

static MPI_Comm between_groups(int side)
{
    MPI_Comm half, both;
    MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 1, &both);
    MPI_Comm_free(&half);
    return both;
}

/* A communicator of the application, which is freed while SCR runs. arg is the order of
 * its ranks: 1 as in MPI_COMM_WORLD, -1 reversed; %N is MPI_COMM_NULL, the only one
 * without MPI; 2: an intercommunicator between the even and the odd ranks. */
static void init_comm(struct probe *p, const char *arg, struct result *r)
{
    MPI_Comm comm;
    int up = 0;
    MPI_Initialized(&up);
    if (!up || p->ended || !or_null(arg)) {
        r->code = SCR_Init_comm(MPI_COMM_NULL);
        return;
    }
    if (atoi(arg) == 2)
        comm = between_groups(p->rank % 2);
    else
        MPI_Comm_split(MPI_COMM_WORLD, 0, p->rank * (atoi(arg) < 0 ? -1 : 1), &comm);
    r->code = SCR_Init_comm(comm);
    MPI_Comm_free(&comm);
}

/* A run of this process alone, without the others. */
static void init_alone(struct probe *p, const char *arg, struct result *r)
{
    r->code = SCR_Init_comm(MPI_COMM_SELF);
}

/* The program uses all communicators of MPI until it releases some. */
static MPI_Comm hoarded[64];
static int hoards;

static void hoard(struct probe *p, const char *arg, struct result *r)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    while (MPI_Comm_dup(MPI_COMM_WORLD, &hoarded[hoards % 64]) == MPI_SUCCESS)
        hoards++;
}

static void release_one(struct probe *p, const char *arg, struct result *r)
{
    MPI_Comm_free(&hoarded[--hoards % 64]);
}

static void finalize(struct probe *p, const char *arg, struct result *r)
{
    r->code = SCR_Finalize();
}

static void abandon(struct probe *p, const char *arg, struct result *r)
{
    r->code = SCR_Abandon();
}

static void config(struct probe *p, const char *arg, struct result *r)
{
    char *value = (char *)(size_t)SCR_Config(or_null(arg));
    r->flag = value != NULL;
    r->has_flag = 1;
    say(r, value ? value : "");
    free(value);
}

/* The same through a format. */
static void configf(struct probe *p, const char *arg, struct result *r)
{
    char *value = (char *)(size_t)SCR_Configf("%s", arg);
    r->flag = value != NULL;
    r->has_flag = 1;
    say(r, value ? value : "");
    free(value);
}

/* ---- output ---- */

static void need(struct probe *p, const char *arg, struct result *r)
{
    r->flag = -1;
    r->has_flag = 1;
    r->code = SCR_Need_checkpoint(or_null(arg) ? &r->flag : NULL);
}

/* NAME:FLAGS, flags being a number or any of the letters c and o. */
static void start(struct probe *p, const char *arg, struct result *r)
{
    char name[PROBE_TEXT];
    const char *flags = split(arg, name, "c");
    int value = (int)strtol(flags, NULL, 0);
    if (strchr(flags, 'c')) value |= SCR_FLAG_CHECKPOINT;
    if (strchr(flags, 'o')) value |= SCR_FLAG_OUTPUT;
    if (strchr(flags, 'b')) value |= SCR_FLAG_BYPASS;
    r->code = SCR_Start_output(or_null(name), value);
    if (r->code == SCR_SUCCESS) set(p->tag, name);
}

static void start_old(struct probe *p, const char *arg, struct result *r)
{
    r->code = SCR_Start_checkpoint();
}

static void route(struct probe *p, const char *arg, struct result *r)
{
    set(p->path, UNTOUCHED);
    r->code = SCR_Route_file(or_null(arg), p->path);
    say(r, p->path);
    set(p->file, arg);
}

/* Passes NULL for the answer. */
static void route_nowhere(struct probe *p, const char *arg, struct result *r)
{
    r->code = SCR_Route_file(arg, NULL);
}

static void write_size(struct probe *p, const char *arg, struct result *r)
{
    r->code = probe_write(p, atol(arg), r->text);
    if (r->code) r->has_text = 1;
}

/* Makes a hole in the routed file, which ends arg bytes later with the byte x. */
static void stretch(struct probe *p, const char *arg, struct result *r)
{
    FILE *file = fopen(p->path, "r+");
    int ok = file && fseek(file, atol(arg), SEEK_END) == 0 && fputc('x', file) == 'x';
    if (file && fclose(file) != 0) ok = 0;
    r->code = !ok;
}

/* Checks that the last byte is the x; the text is the size of the file. */
static void stretched(struct probe *p, const char *arg, struct result *r)
{
    FILE *file = fopen(p->path, "r");
    r->has_text = 1;
    r->code = !(file && fseek(file, -1, SEEK_END) == 0 && fgetc(file) == 'x');
    snprintf(r->text, sizeof r->text, "%ld", file ? ftell(file) : -1);
    if (file) fclose(file);
}

/* FILE:SIZE */
static void put(struct probe *p, const char *arg, struct result *r)
{
    char name[PROBE_TEXT];
    const char *size = split(arg, name, "1000");
    route(p, name, r);
    if (r->code == SCR_SUCCESS) write_size(p, size, r);
}

/* 1, 0, or !RANK: 0 on that rank and 1 on all others. */
static int valid(const struct probe *p, const char *arg)
{
    return arg[0] == '!' ? atoi(arg + 1) != p->rank : atoi(arg);
}

static void complete(struct probe *p, const char *arg, struct result *r)
{
    r->code = SCR_Complete_output(valid(p, arg));
}

static void complete_old(struct probe *p, const char *arg, struct result *r)
{
    r->code = SCR_Complete_checkpoint(valid(p, arg));
}

/* ---- restart ---- */

/* "%N": no buffer for the name; "%F": none for the flag; "%N%F": neither. */
static void have(struct probe *p, const char *arg, struct result *r)
{
    char name[SCR_MAX_FILENAME] = UNTOUCHED;
    r->flag = -1;
    r->has_flag = 1;
    r->code = SCR_Have_restart(strstr(arg, "%F") ? NULL : &r->flag,
                               strstr(arg, "%N") ? NULL : name);
    say(r, name);
}

/* "%N": no buffer for the name; "%C": a constant, as a name to restart from. */
static void start_restart(struct probe *p, const char *arg, struct result *r)
{
    char name[SCR_MAX_FILENAME] = UNTOUCHED;
    char *constant = (char *)(size_t) "constant";
    int is_constant = strcmp(arg, "%C") == 0;
    r->code = SCR_Start_restart(is_constant ? constant : or_null(arg) ? name : NULL);
    say(r, name);
    if (r->code == SCR_SUCCESS && or_null(arg)) set(p->tag, name);
}

static void compare(struct probe *p, const char *arg, struct result *r)
{
    r->code = probe_compare(p, atol(arg), r->text);
    if (r->code) r->has_text = 1;
}

/* FILE:SIZE */
static void get(struct probe *p, const char *arg, struct result *r)
{
    char name[PROBE_TEXT];
    const char *size = split(arg, name, "1000");
    route(p, name, r);
    if (r->code == SCR_SUCCESS) compare(p, size, r);
}

static void complete_restart(struct probe *p, const char *arg, struct result *r)
{
    r->code = SCR_Complete_restart(valid(p, arg));
}

/* ---- control ---- */

static void should_exit(struct probe *p, const char *arg, struct result *r)
{
    r->flag = -1;
    r->has_flag = 1;
    r->code = SCR_Should_exit(or_null(arg) ? &r->flag : NULL);
}

static void current(struct probe *p, const char *arg, struct result *r)
{
    r->code = SCR_Current(or_null(arg));
}

static void delete (struct probe *p, const char *arg, struct result *r)
{
    r->code = SCR_Delete(or_null(arg));
}

static void drop(struct probe *p, const char *arg, struct result *r)
{
    r->code = SCR_Drop(or_null(arg));
}

static void version(struct probe *p, const char *arg, struct result *r)
{
    say(r, SCR_Get_version());
}

static void text_of(struct probe *p, const char *arg, struct result *r)
{
    say(r, SCR_Strerror(atoi(arg)));
}

/* ---- the program itself ---- */

/* Contents of unnamed datasets also depend on a name. */
static void tag(struct probe *p, const char *arg, struct result *r)
{
    set(p->tag, arg);
}

static void end_mpi(struct probe *p, const char *arg, struct result *r)
{
    char path[PROBE_TEXT];
    const char *late = getenv("JOB_LATE");
    MPI_Finalize();
    p->ended = 1;
    /* lines of several ranks would mix in one stream */
    snprintf(path, sizeof path, "%.2000s.%d", late ? late : "", p->rank);
    if (!late || !freopen(path, "w", stdout)) r->code = 1;
}

static void nothing(struct probe *p, const char *arg, struct result *r)
{
}

static void remove_file(struct probe *p, const char *arg, struct result *r)
{
    r->code = unlink(p->path) != 0;
}

static void change_folder(struct probe *p, const char *arg, struct result *r)
{
    r->code = chdir(arg) != 0;
}

static void milliseconds(struct probe *p, const char *arg, struct result *r)
{
    poll(NULL, 0, atoi(arg));
}

/* The two sides of a rendezvous with the script that runs this program. The file is empty
 * afterwards. */
static void touch(struct probe *p, const char *arg, struct result *r)
{
    int fd = open(arg, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    r->code = fd < 0 || close(fd) != 0;
}

static void await(struct probe *p, const char *arg, struct result *r)
{
    while (access(arg, F_OK) != 0)
        poll(NULL, 0, 5);
}

static void kill_rank(struct probe *p, const char *arg, struct result *r)
{
    raise(SIGKILL);
}

static void raise_signal(struct probe *p, const char *arg, struct result *r)
{
    static const struct {
        const char *name;
        int number;
    } signals[] = {{"TERM", SIGTERM}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2}};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (strcmp(signals[i].name, arg) == 0) raise(signals[i].number);
}

static void crash(struct probe *p, const char *arg, struct result *r)
{
    r->has_flag = 1;
    r->flag = probe_crash_at(atoi(arg));
}

static void no_room(struct probe *p, const char *arg, struct result *r)
{
    probe_no_room_for(arg);
}

static void unreadable(struct probe *p, const char *arg, struct result *r)
{
    probe_unreadable(arg);
}

static void slow(struct probe *p, const char *arg, struct result *r)
{
    probe_slow(atol(arg));
}

static void open_files(struct probe *p, const char *arg, struct result *r)
{
    DIR *stream = opendir("/proc/self/fd");
    r->has_flag = 1;
    while (stream && readdir(stream))
        r->flag++;
    if (stream) closedir(stream);
}

static void communicators(struct probe *p, const char *arg, struct result *r)
{
    r->has_flag = 1;
    r->flag = probe_communicators();
}

/* Size of single transfers. */
static void largest(struct probe *p, const char *arg, struct result *r)
{
    r->has_flag = 1;
    r->flag = (int)probe_largest(arg);
}

/* In bytes, and in kB. */
static void allocated(struct probe *p, const char *arg, struct result *r)
{
    r->has_flag = 1;
    r->flag = (int)probe_allocated();
}

static void resident(struct probe *p, const char *arg, struct result *r)
{
    r->has_flag = 1;
    r->flag = (int)(probe_resident() / 1024);
}

/* Milliseconds since the last query. */
static void lap(struct probe *p, const char *arg, struct result *r)
{
    static long last;
    long now = probe_milliseconds();
    r->has_flag = 1;
    r->flag = (int)(now - last);
    last = now;
}

/* Number of communicators that can still be made: a leak shows as a smaller number. */
static void spare_comms(struct probe *p, const char *arg, struct result *r)
{
    enum { MOST = 4096 };
    static MPI_Comm comms[MOST];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    r->has_flag = 1;
    while (r->flag < MOST && MPI_Comm_dup(MPI_COMM_WORLD, &comms[r->flag]) == MPI_SUCCESS)
        r->flag++;
    for (int i = 0; i < r->flag; i++)
        MPI_Comm_free(&comms[i]);
}

static const struct verb verbs[] = {
    {"init", 1, init},
    {"init_comm", 1, init_comm},
    {"init_alone", 0, init_alone},
    {"hoard", 1, hoard},
    {"release", 1, release_one},
    {"finalize", 1, finalize},
    {"abandon", 1, abandon},
    {"abandon_many", 1, probe_abandon_many},
    {"config", 1, config},
    {"configf", 1, configf},
    {"need", 1, need},
    {"start", 1, start},
    {"start_checkpoint", 1, start_old},
    {"route", 0, route},
    {"route_nowhere", 0, route_nowhere},
    {"write", 0, write_size},
    {"put", 0, put},
    {"stretch", 0, stretch},
    {"stretched", 0, stretched},
    {"complete", 1, complete},
    {"complete_checkpoint", 1, complete_old},
    {"series", 1, probe_series},
    {"put_many", 0, probe_put_many},
    {"get_many", 0, probe_get_many},
    {"compute", 1, probe_compute},
    {"take", 1, probe_take},
    {"take_file", 1, probe_take_file},
    {"fetch_files", 1, probe_fetch_files},
    {"put_parts", 0, probe_put_parts},
    {"get_parts", 0, probe_get_parts},
    {"put_range", 0, probe_put_range},
    {"get_range", 0, probe_get_range},
    {"fetch_range", 1, probe_fetch_range},
    {"fetch_hole", 1, probe_fetch_hole},
    {"fetch_share", 1, probe_fetch_share},
    {"part", 0, probe_part},
    {"part_nowhere", 0, probe_part_nowhere},
    {"fetch_parts", 1, probe_fetch_parts},
    {"dataset_file", 0, probe_dataset_file},
    {"have", 1, have},
    {"start_restart", 1, start_restart},
    {"compare", 0, compare},
    {"get", 0, get},
    {"complete_restart", 1, complete_restart},
    {"exit", 1, should_exit},
    {"current", 1, current},
    {"delete", 1, delete},
    {"drop", 1, drop},
    {"version", 1, version},
    {"strerror", 1, text_of},
    {"bare", 0, nothing},
    {"mpi_end", 0, end_mpi},
    {"tag", 0, tag},
    {"unlink", 0, remove_file},
    {"chdir", 0, change_folder},
    {"sleep", 0, milliseconds},
    {"touch", 0, touch},
    {"await", 0, await},
    {"kill", 0, kill_rank},
    {"raise", 0, raise_signal},
    {"crash", 0, crash},
    {"no_room", 0, no_room},
    {"unreadable", 0, unreadable},
    {"slow", 0, slow},
    {"fds", 0, open_files},
    {"comms", 1, spare_comms},
    {"communicators", 1, communicators},
    {"largest", 0, largest},
    {"allocated", 0, allocated},
    {"resident", 0, resident},
    {"lap", 0, lap},
};

const struct verb *probe_verb(const char *name)
{
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(verbs[i].name, name) == 0) return &verbs[i];
    return NULL;
}
