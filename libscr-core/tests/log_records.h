/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LOG_RECORDS_H
#define LOG_RECORDS_H

/* What the tests of the log share: a log whose warnings are kept, hostile texts, and
 * readers of both kinds of lines that share nothing with the code. */

#include "records.h"
#include "report/log_private.h"
#include <errno.h>
#include <syslog.h>

/* What a log told. */
struct told {
    int lines;
    char text[4000];
};

static inline void told_line(void *arg, scr_message message, const char *line)
{
    struct told *told = arg;
    size_t length = strlen(told->text);
    snprintf(told->text + length, sizeof told->text - length, "%s: %s\n",
             scr_messages[message].identifier, line);
    told->lines++;
}

/* Whether a line has that identifier and both values. */
static inline bool told_has(const struct told *told, const char *identifier,
                            const char *one, const char *two)
{
    char line[sizeof told->text];
    for (const char *at = told->text; *at; at += strcspn(at, "\n") + 1) {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
        if (strncmp(line, identifier, strlen(identifier)) == 0 && strstr(line, one) &&
            strstr(line, two))
            return true;
    }
    return false;
}

static inline scr_log_options log_options(const struct scratch *s, unsigned targets,
                                          struct told *told)
{
    memset(told, 0, sizeof *told);
    return (scr_log_options){.set = {.targets = targets,
                                     .syslog_priority = LOG_LOCAL7 | LOG_INFO,
                                     .syslog_prefix = "SCR"},
                             .prefix = s->dir,
                             .run = "run-1",
                             .user = "me",
                             .job_id = "17",
                             .host = "n1",
                             .report = told_line,
                             .arg = told};
}

/* A whole file below the directory, to be freed; "" where there is none. */
static inline char *log_read(const struct scratch *s, const char *name)
{
    struct stat st;
    int fd = openat(s->dir, name, O_RDONLY);
    if (fd < 0) return strdup("");
    assert_int_equal(fstat(fd, &st), 0);
    char *text = calloc(1, (size_t)st.st_size + 1);
    assert_int_equal(read(fd, text, (size_t)st.st_size), st.st_size);
    close(fd);
    return text;
}

/* Lines, but for empty ones: a log that is opened just while another process appends a
 * line may take that for one that was cut off. */
static inline int count_lines(const char *text)
{
    int n = 0;
    for (; (text = strchr(text, '\n')); text++)
        n += text[1] != '\n';
    return n;
}

/* ---- hostile texts ---- */

#define LONG_NAME 1023

/* The i-th one, in buffer; 0: there are no more. */
static inline int hostile_text(int i, char buffer[LONG_NAME + 1])
{
    static const char *const texts[] = {
        "plain",
        "two\nlines\r\n\n",
        "a \"quoted\" \\ back\\\\slash\" dset=7",
        "\x01\x02\x1b[31mred\x7f\t\b",
        "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x92\xbe",
        "caf\xe9 \xff\xfe\x80",
        "\xc3",
        "\xe2\x82",
        "\xc0\xaf \xed\xa0\x80 \xf4\x90\x80\x80",
        "\xc2\x9b control, \xe2\x80\xae turned, \xef\xbb\xbf",
        "'); DROP TABLE scr_events; --",
        "%s%n%1000000d",
        "{\"a\": 1}",
        "\\x41\\n\\u0041",
        " ",
    };
    int count = (int)(sizeof texts / sizeof *texts);
    if (i < count) {
        strcpy(buffer, texts[i]);
        return 1;
    }
    memset(buffer, i == count ? '"' : i == count + 1 ? '\xff' : 'x', LONG_NAME);
    buffer[LONG_NAME] = 0;
    return i < count + 3;
}

/* ---- a reader of text lines ---- */

static inline int hex_digit(char c)
{
    const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* One byte of a quoted text at *at; -1 at its end, -2 if it is wrong. */
static inline int quoted_byte(const char **at)
{
    const char *p = *at;
    *at = p + 1;
    if (*p == '"') return -1;
    if ((unsigned char)*p < 0x20) return -2;
    if (*p != '\\') return (unsigned char)*p;
    *at = p + 2;
    if (p[1] == '\\' || p[1] == '"') return p[1];
    if (p[1] == 'n') return '\n';
    if (p[1] != 'x' || hex_digit(p[2]) < 0 || hex_digit(p[3]) < 0) return -2;
    *at = p + 4;
    return hex_digit(p[2]) * 16 + hex_digit(p[3]);
}

/* The value of a field of a line that ends at its newline, in buffer; 0 if it has none.
 * The whole line is parsed, and has to be right. */
static inline int text_field(const char *line, const char *name, char *buffer)
{
    int found = 0;
    const char *at = strchr(line, ' ') + 1;
    assert_true(line[10] == 'T' && at == line + 28); /* the time */
    at += strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
    while (*at != '\n') {
        char value[5000];
        int n = 0, byte;
        assert_int_equal(*at, ' ');
        size_t length = strcspn(++at, "=");
        int here = strncmp(at, name, length) == 0 && name[length] == 0;
        at += length + 1;
        if (*at == '"') {
            for (at++; (byte = quoted_byte(&at)) >= 0;)
                value[n++] = (char)byte;
            assert_int_equal(byte, -1);
        } else {
            while (strchr("0123456789.-", *at))
                value[n++] = *at++;
            assert_true(n > 0);
        }
        value[n] = 0;
        if (here) strcpy(buffer, value);
        found += here;
    }
    assert_true(found <= 1);
    return found;
}

/* ---- a reader of JSON lines ---- */

static inline char *put_utf8(char *to, unsigned c)
{
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xc0 | c >> 6);
        *to++ = (char)(0x80 | (c & 0x3f));
    } else {
        *to++ = (char)(0xe0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
        *to++ = (char)(0x80 | (c & 0x3f));
    }
    return to;
}

/* A JSON string at *at, in buffer. */
static inline void json_string(const char **at, char *buffer)
{
    const char *p = *at;
    assert_int_equal(*p++, '"');
    for (; *p != '"'; p++) {
        unsigned c = 0;
        assert_true((unsigned char)*p >= 0x20);
        if (*p != '\\') {
            *buffer++ = *p;
        } else if (*++p == 'u') {
            for (int i = 0; i < 4; i++)
                c = c * 16 + (unsigned)hex_digit(*++p);
            assert_true(c > 0 && (c < 0xd800 || c >= 0xe000));
            buffer = put_utf8(buffer, c);
        } else {
            assert_true(*p == '"' || *p == '\\');
            *buffer++ = *p;
        }
    }
    *buffer = 0;
    *at = p + 1;
}

/* As text_field, of a flat object. */
static inline int json_field(const char *line, const char *name, char *buffer)
{
    char key[100], value[20000];
    int found = 0;
    const char *at = line;
    assert_int_equal(*at++, '{');
    for (;;) {
        json_string(&at, key);
        assert_memory_equal(at, ": ", 2);
        at += 2;
        if (*at == '"') {
            json_string(&at, value);
        } else {
            size_t n = strspn(at, "0123456789.-");
            assert_true(n > 0);
            memcpy(value, at, n);
            value[n] = 0;
            at += n;
        }
        if (strcmp(key, name) == 0) strcpy(buffer, value);
        found += strcmp(key, name) == 0;
        if (*at == '}') break;
        assert_memory_equal(at, ", ", 2);
        at += 2;
    }
    assert_int_equal(at[1], '\n');
    assert_true(found <= 1);
    return found;
}

/* The exact bytes of a text of a JSON line. */
static inline int json_bytes(const char *line, const char *name, char *buffer)
{
    char hex[120], digits[20000];
    snprintf(hex, sizeof hex, "%s_hex", name);
    if (!json_field(line, hex, digits)) return json_field(line, name, buffer);
    for (const char *d = digits; *d; d += 2)
        *buffer++ = (char)(hex_digit(d[0]) * 16 + hex_digit(d[1]));
    *buffer = 0;
    return 1;
}

#endif
