/* SPDX-License-Identifier: BSD-3-Clause */
/* Times as people write and read them; see tool_time.h. */
#include "lib/tool_time.h"

#include "common/number.h"
#include "config/parameters.h"
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LEAST_DIGITS = 9 }; /* shorter numbers are mistakes, not seconds since 1970 */

/* Parses text of the given form, in which 9 stands for any digit and every other
 * character for itself. strptime alone would accept "1:2" for "01:02". Returns the text
 * that follows, or NULL. */
static const char *time_parse_form(const char *text, const char *form, const char *format,
                                   struct tm *tm)
{
    for (size_t i = 0; form[i]; i++)
        if (form[i] == '9' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
            return NULL;
    return strptime(text, format, tm);
}

/* Parses "18:30", "18:30:05", "6:30pm" or "6pm"; false if anything else follows. */
static bool time_parse_clock(const char *text, struct tm *tm)
{
    static const char *const forms[][3] = {{"99:99:99", "%H:%M:%S", "%I:%M:%S%p"},
                                           {"9:99:99", "%H:%M:%S", "%I:%M:%S%p"},
                                           {"99:99", "%H:%M", "%I:%M%p"},
                                           {"9:99", "%H:%M", "%I:%M%p"},
                                           {"99", "%I%p", "%I%p"},
                                           {"9", "%I%p", "%I%p"}};
    tm->tm_min = tm->tm_sec = 0;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (int k = 1; k < 3; k++) {
            const char *rest = time_parse_form(text, forms[i][0], forms[i][k], tm);
            if (rest && !*rest) return tm->tm_sec < 60;
        }
    return false;
}

/* Removes a zone, "Z", "+01:00" or "+0100", from the end of text; *east: its offset in
 * seconds. False if there is none. */
static bool time_take_zone(char *text, int *east)
{
    size_t length = strlen(text);
    static const char *const forms[] = {"99:99", "9999"};
    if (length && text[length - 1] == 'Z') {
        text[length - 1] = 0;
        *east = 0;
        return true;
    }
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct tm tm = {.tm_hour = 0};
        size_t size = strlen(forms[i]);
        if (length <= size) continue;
        char *zone = text + length - size;
        const char *rest = time_parse_form(zone, forms[i], i ? "%H%M" : "%H:%M", &tm);
        if (!rest || *rest || (zone[-1] != '+' && zone[-1] != '-')) continue;
        *east = (tm.tm_hour * 60 + tm.tm_min) * (zone[-1] == '-' ? -60 : 60);
        zone[-1] = 0;
        return true;
    }
    return false;
}

/* Parses "2026-11-22" or "2026-11-22T18:30", the latter also with a zone; -EINVAL also
 * for the 30th of February. */
static int time_parse_calendar(const char *text, int64_t *time)
{
    struct tm tm = {.tm_isdst = -1};
    char clock[32];
    int east = 0;
    bool has_zone = false;
    const char *rest = time_parse_form(text, "9999-99-99", "%Y-%m-%d", &tm);
    if (!rest || (*rest && *rest != 'T' && *rest != ' ')) return -EINVAL;
    if (*rest) {
        snprintf(clock, sizeof clock, "%s", rest + 1);
        has_zone = time_take_zone(clock, &east);
        if (!time_parse_clock(clock, &tm)) return -EINVAL;
    }
    tm.tm_isdst = -1;
    const int day = tm.tm_mday;
    time_t t = has_zone ? timegm(&tm) : mktime(&tm);
    if (t == (time_t)-1 || tm.tm_mday != day) return -EINVAL;
    *time = t - east;
    return 0;
}

/* Finds the next time at which local clocks show text. */
static int time_parse_next(const char *text, int64_t now, int64_t *time)
{
    struct tm tm;
    time_t t = (time_t)now;
    if (!localtime_r(&t, &tm) || !time_parse_clock(text, &tm)) return -EINVAL;
    for (int i = 0; i < 2; i++) {
        tm.tm_isdst = -1;
        t = mktime(&tm);
        if (t == (time_t)-1) return -EINVAL;
        if (t >= now) break;
        tm.tm_mday++; /* mktime normalizes it at the end of a month */
    }
    *time = t;
    return 0;
}

/* Parses "18:30 today" or "6:30pm tomorrow". */
static int time_parse_day(const char *text, int64_t now, int64_t *time)
{
    static const char *const days[] = {" today", " tomorrow"};
    char clock[16];
    struct tm tm;
    time_t t = (time_t)now;
    const char *blank = strchr(text, ' ');
    size_t length = blank ? (size_t)(blank - text) : sizeof clock;
    if (length >= sizeof clock || !localtime_r(&t, &tm)) return -EINVAL;
    memcpy(clock, text, length);
    clock[length] = 0;
    bool tomorrow = strcmp(blank, days[1]) == 0;
    if ((!tomorrow && strcmp(blank, days[0]) != 0) || !time_parse_clock(clock, &tm))
        return -EINVAL;
    tm.tm_mday += tomorrow;
    tm.tm_isdst = -1;
    t = mktime(&tm);
    *time = t;
    return t == (time_t)-1 ? -EINVAL : 0;
}

int tool_time_parse(const char *text, int64_t now, int64_t *time)
{
    int64_t value;
    if (*text == '+') {
        if (scr_parse_seconds(text + 1, &value) != 0 || value > INT64_MAX - now)
            return -EINVAL;
        *time = now + value;
        return 0;
    }
    if (strspn(text, "0123456789") == strlen(text)) {
        if (strlen(text) < LEAST_DIGITS || number_int64(text, &value) != 0)
            return -EINVAL;
        *time = value;
        return 0;
    }
    if (time_parse_calendar(text, time) == 0) return 0;
    if (time_parse_day(text, now, time) == 0) return 0;
    return time_parse_next(text, now, time);
}

/* Adds the colon that strftime omits in a zone. */
static void time_put_colon(char *text)
{
    char *minutes = text + strlen(text) - strlen("00");
    memmove(minutes + 1, minutes, sizeof "00");
    *minutes = ':';
}

void tool_time_text(int64_t time, char text[TOOL_TIME_SIZE])
{
    struct tm tm;
    time_t t = (time_t)time;
    if (localtime_r(&t, &tm) &&
        strftime(text, TOOL_TIME_SIZE - 1, "%Y-%m-%dT%H:%M:%S%z", &tm))
        time_put_colon(text);
    else
        snprintf(text, TOOL_TIME_SIZE, "%" PRId64, time);
}
