/* SPDX-License-Identifier: BSD-3-Clause */
/* kvtree_print: shows the content of tree files, or checks them. It is also installed as
 * scr_print_hash_file (SCR Developer Guide 1.2, section 2.3.3), and as scr_print of SCR
 * 3, which sorts. It only reads. */
#include "common/command.h"
#include "src/kvtree_private.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARGUMENTS "[OPTION]... FILE..."

#define INDENT_MAX 64
#define INDENT_USUAL 2

struct request {
    int form, indent;
    int in_margin; /* the first level is indented as well */
    int verify;    /* check only */
    int headings;  /* name each file */
    int sort;
};

/* ---- files ---- */

static int kvtree_print_complain(const char *file, const char *text)
{
    return command_complain("KVTREE_FILE_UNREADABLE", "read %s: %s", file, text);
}

/* Unlike kvtree_read_file, follows a link, since users have links to files. */
static int kvtree_print_read(const char *file, kvtree *tree,
                             struct kvtree_file_facts *facts)
{
    kvtree_error err = {""};
    int is_input = strcmp(file, "-") == 0;
    int fd = is_input ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return kvtree_print_complain(file, strerror(errno));
    int rc = kvtree_read_whole(fd, KVTREE_ANY_SIZE, tree, facts, &err);
    if (!is_input) close(fd);
    return rc ? kvtree_print_complain(file, err.text) : COMMAND_GOOD;
}

/* ---- output ---- */

static int kvtree_print_facts(const char *file, const struct kvtree_file_facts *facts)
{
    kvtree_fprint_key(stdout, file);
    printf(": good, %" PRIu64 " bytes, %" PRIu64 " elements, ", facts->size,
           facts->elements);
    if (facts->has_crc)
        printf("checksum 0x%08" PRIx32 "\n", facts->crc);
    else
        printf("without checksum\n");
    return command_flush();
}

static int kvtree_print_tree(const char *file, const kvtree *tree,
                             const struct request *request)
{
    if (request->headings) {
        kvtree_fprint_key(stdout, file);
        printf(":\n");
    }
    size_t margin = request->in_margin ? (size_t)request->indent : 0;
    int rc = kvtree_fprint_at(stdout, tree, request->form, request->indent, margin);
    return rc ? command_write_failed(-rc) : COMMAND_GOOD;
}

static int kvtree_print_sort(kvtree *tree)
{
    size_t depth = 0;
    int rc = kvtree_sort(tree, KVTREE_SORT_ASCENDING);
    for (kvtree_elem *e = NULL; !rc && (e = kvtree_walk(tree, e, &depth));)
        rc = kvtree_sort(kvtree_elem_hash(e), KVTREE_SORT_ASCENDING);
    return rc;
}

static int kvtree_print_file(const char *file, const struct request *request)
{
    struct kvtree_file_facts facts;
    kvtree *tree = kvtree_new();
    if (!tree) return kvtree_print_complain(file, strerror(ENOMEM));
    int rc = kvtree_print_read(file, tree, &facts);
    if (rc == COMMAND_GOOD && request->sort && kvtree_print_sort(tree) != 0)
        rc = kvtree_print_complain(file, strerror(ENOMEM));
    if (rc == COMMAND_GOOD)
        rc = request->verify ? kvtree_print_facts(file, &facts)
                             : kvtree_print_tree(file, tree, request);
    kvtree_delete(&tree);
    return rc;
}

static int kvtree_print_files(char **files, const struct request *request)
{
    int worst = COMMAND_GOOD;
    for (; *files && !ferror(stdout); files++)
        if (kvtree_print_file(*files, request) != COMMAND_GOOD) worst = COMMAND_BAD;
    return worst;
}

/* ---- arguments ---- */

static int kvtree_print_help(void)
{
    command_usage(stdout, ARGUMENTS);
    printf(
        "Shows the trees of strings that SCR keeps in files. FILE may be - for standard\n"
        "input. scr_print sorts keys, and \"--mode keyval\" is its default.\n"
        "\n"
        "  -m, --mode MODE  as KVTree prints: tree, a key per line, indented by its "
        "level\n"
        "                   (the default), or keyval, with KEY = VALUE on one line\n"
        "  -t, --tree       as --mode tree, but the first level is not indented\n"
        "  -k, --key-value  the same, with KEY = VALUE on one line\n"
        "  -l, --lines      as --key-value, with guide lines\n"
        "  -j, --json       one JSON object per file\n"
        "  -i, --indent N   columns per level, 1 to %d (default: %d)\n"
        "  -v, --verify     check each file, and tell its size and checksum instead\n"
        "  -h, --help       print this text\n"
        "  -V, --version    print the version\n"
        "\n"
        "Exit code: 0 all files are good, 1 a file cannot be read or is damaged, or the\n"
        "output failed, 2 wrong usage.\n",
        INDENT_MAX, INDENT_USUAL);
    return command_flush();
}

static int kvtree_print_parse_indent(const char *text, int *indent)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || *end || end == text || value < 1 || value > INDENT_MAX)
        return command_misused(ARGUMENTS, "--indent takes a number from 1 to %d",
                               INDENT_MAX);
    *indent = (int)value;
    return COMMAND_GOOD;
}

static int kvtree_print_parse_mode(const char *text, struct request *request)
{
    bool is_pairs = strcmp(text, "keyval") == 0;
    if (!is_pairs && strcmp(text, "tree") != 0)
        return command_misused(ARGUMENTS, "--mode takes tree or keyval");
    request->form = is_pairs ? KVTREE_FORM_PAIRS : KVTREE_FORM_TREE;
    request->in_margin = 1;
    return COMMAND_GOOD;
}

/* Parses the argument of an option. */
static int kvtree_print_parse(int option, const char *text, struct request *request)
{
    return option == 'm' ? kvtree_print_parse_mode(text, request)
                         : kvtree_print_parse_indent(text, &request->indent);
}

int main(int argc, char **argv)
{
    static const char forms[] = "tklj"; /* in the order of KVTREE_FORM_* */
    static const struct option options[] = {
        {"mode", required_argument, NULL, 'm'}, {"tree", no_argument, NULL, 't'},
        {"key-value", no_argument, NULL, 'k'},  {"lines", no_argument, NULL, 'l'},
        {"json", no_argument, NULL, 'j'},       {"indent", required_argument, NULL, 'i'},
        {"verify", no_argument, NULL, 'v'},     {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},    {NULL, 0, NULL, 0}};
    struct request request = {
        .form = KVTREE_FORM_TREE, .indent = INDENT_USUAL, .in_margin = 1};
    command_open_streams();
    if (strcmp(command_self(), "scr_print") == 0) {
        request.form = KVTREE_FORM_PAIRS;
        request.sort = 1;
    }
    for (int c; (c = getopt_long(argc, argv, "m:tklji:vhV", options, NULL)) != -1;) {
        const char *form = strchr(forms, c);
        if (form) {
            request.form = (int)(form - forms);
            request.in_margin = 0;
        } else if (c == 'v')
            request.verify = 1;
        else if (c == 'h')
            return kvtree_print_help();
        else if (c == 'V')
            return command_version();
        else if (c != 'i' && c != 'm')
            return command_wrong_usage(ARGUMENTS);
        else if (kvtree_print_parse(c, optarg, &request) != COMMAND_GOOD)
            return COMMAND_WRONG_USAGE;
    }
    if (command_count(ARGUMENTS, argc - optind, 1, -1) != COMMAND_GOOD ||
        command_names(ARGUMENTS, argc - optind, argv + optind) != COMMAND_GOOD)
        return COMMAND_WRONG_USAGE;
    request.headings = argc - optind > 1 && request.form != KVTREE_FORM_JSON;
    return kvtree_print_files(argv + optind, &request);
}
