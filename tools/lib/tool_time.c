/* SPDX-License-Identifier: BSD-3-Clause */
/* Times as people write and read them; see tool_time.h. */
#include "lib/tool_time.h"

#include "common/number.h"
#include "config/parameters.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { LEAST_DIGITS = 9 }; /* fewer are no seconds since 1970, but a slip */

/* Number of digits, at most most, that text begins with; *value is what they say. */
static int digits(const char *text, int most, int *value)
{
    int n = 0;
    *value = 0;
    for (; n < most && text[n] >= '0' && text[n] <= '9'; n++)
        *value = *value * 10 + (text[n] - '0');
    return n;
}

/* "18:30", "18:30:05", "6:30pm": what is left of the text, or NULL. */
static const char *parse_clock(const char *text, struct tm *tm)
{
    int n = digits(text, 2, &tm->tm_hour);
    if (n == 0 || text[n] != ':' || digits(text + n + 1, 2, &tm->tm_min) != 2)
        return NULL;
    text += n + 3;
    tm->tm_sec = 0;
    if (*text == ':') {
        if (digits(text + 1, 2, &tm->tm_sec) != 2) return NULL;
        text += 3;
    }
    int pm = strncasecmp(text, "pm", 2) == 0;
    if (pm || strncasecmp(text, "am", 2) == 0) {
        if (tm->tm_hour < 1 || tm->tm_hour > 12) return NULL;
        tm->tm_hour = tm->tm_hour % 12 + 12 * pm;
        text += 2;
    }
    return tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec < 60 ? text : NULL;
}

/* "2026-11-22": what is left, or NULL. */
static const char *parse_date(const char *text, struct tm *tm)
{
    int year, month, day;
    if (digits(text, 4, &year) != 4 || text[4] != '-' ||
        digits(text + 5, 2, &month) != 2 || text[7] != '-' ||
        digits(text + 8, 2, &day) != 2)
        return NULL;
    tm->tm_year = year - 1900;
    tm->tm_mon = month - 1;
    tm->tm_mday = day;
    return text + 10;
}

/* The time of a calendar that the fields name; -EINVAL for the 30th of February. */
static int make_time(const struct tm *wanted, int64_t *time)
{
    struct tm tm = *wanted;
    tm.tm_isdst = -1;
    time_t t = mktime(&tm);
    if (t == (time_t)-1 || tm.tm_mday != wanted->tm_mday || tm.tm_mon != wanted->tm_mon)
        return -EINVAL;
    *time = t;
    return 0;
}

static int parse_calendar(const char *text, int64_t *time)
{
    struct tm tm = {.tm_hour = 0};
    text = parse_date(text, &tm);
    if (text && (*text == 'T' || *text == ' ')) text = parse_clock(text + 1, &tm);
    return text && !*text ? make_time(&tm, time) : -EINVAL;
}

/* The next time at which clocks show that. */
static int parse_today(const char *text, int64_t now, int64_t *time)
{
    struct tm tm;
    time_t t = (time_t)now;
    if (!localtime_r(&t, &tm)) return -EINVAL;
    text = parse_clock(text, &tm);
    if (!text || *text) return -EINVAL;
    tm.tm_isdst = -1;
    t = mktime(&tm);
    if (t < now) {
        tm.tm_mday++; /* mktime knows how long the month is */
        tm.tm_isdst = -1;
        t = mktime(&tm);
    }
    if (t == (time_t)-1) return -EINVAL;
    *time = t;
    return 0;
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
    if (parse_calendar(text, time) == 0) return 0;
    return parse_today(text, now, time);
}

void tool_time_text(int64_t time, char text[TOOL_TIME_SIZE])
{
    struct tm tm;
    time_t t = (time_t)time;
    if (!localtime_r(&t, &tm) ||
        !strftime(text, TOOL_TIME_SIZE, "%Y-%m-%dT%H:%M:%S%z", &tm))
        snprintf(text, TOOL_TIME_SIZE, "%" PRId64, time);
}
