/* SPDX-License-Identifier: BSD-3-Clause */
/* Any text as a number, and any number as text. A getter accepts a text exactly when it
 * is a number of the getter's type, determined here by grammar and 128-bit arithmetic. A
 * getter reads what its setter wrote. The text is the input without NULs; the numbers are
 * its first bytes. */
#include "fuzz_tree.h"

#include <float.h>
#include <inttypes.h>
#include <kvtree/kvtree_util.h>
#include <math.h>
#include <stdio.h>

__extension__ typedef __int128 wide;

/* ---- what a number is ---- */

static int digit_of(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return 16;
}

/* Returns 1 if text is all digits; *value is their value (and stops growing far above 64
 * bits). */
static int digits(const char *text, int base, wide *value)
{
    const wide enough = (wide)1 << 100;
    *value = 0;
    if (!*text) return 0;
    for (; *text; text++) {
        if (digit_of(*text) >= base) return 0;
        if (*value < enough) *value = *value * base + digit_of(*text);
    }
    return 1;
}

static int is_integer(const char *text, wide least, wide most, wide *value)
{
    int negative = *text == '-', sign = negative || *text == '+';
    if (!digits(text + sign, 10, value)) return 0;
    if (negative) *value = -*value;
    return *value >= least && *value <= most;
}

static int is_unsigned(const char *text, wide most, wide *value)
{
    return digits(text, 10, value) && *value <= most;
}

static int is_hexadecimal(const char *text, wide most, wide *value)
{
    return strncmp(text, "0x", 2) == 0 && digits(text + 2, 16, value) && *value <= most;
}

static size_t skip_digits(const char **text, int *nonzero)
{
    size_t n = strspn(*text, "0123456789");
    *nonzero = *nonzero || strspn(*text, "0") < n;
    *text += n;
    return n;
}

/* Whether text is [sign] digits [. digits] [e [sign] digits], with a digit before or
 * after the point. */
static int is_decimal(const char *text, int *nonzero)
{
    int ignored = 0;
    *nonzero = 0;
    text += *text == '+' || *text == '-';
    size_t found = skip_digits(&text, nonzero);
    if (*text == '.') {
        text++;
        found += skip_digits(&text, nonzero);
    }
    if (!found) return 0;
    if (*text == 'e' || *text == 'E') {
        text++;
        text += *text == '+' || *text == '-';
        if (skip_digits(&text, &ignored) == 0) return 0;
    }
    return *text == 0;
}

/* ---- getters ---- */

#define UNTOUCHED 0x5a5a5a5a

static void get_integers(const kvtree *tree, const char *text)
{
    wide number;
    int i = UNTOUCHED, good = is_integer(text, INT_MIN, INT_MAX, &number);
    REQUIRE(kvtree_util_get_int(tree, "K", &i) == (good ? 0 : -EINVAL));
    REQUIRE(i == (good ? number : UNTOUCHED));

    const kvtree *values = kvtree_get(tree, "K");
    const kvtree_elem *elem = kvtree_elem_first(values);
    REQUIRE(kvtree_elem_key_int(elem) == (good ? number : 0));
    int count = UNTOUCHED, *list = NULL;
    REQUIRE(kvtree_list_int(values, &count, &list) == (good ? 0 : -EINVAL));
    REQUIRE(good ? count == 1 && list[0] == number : count == UNTOUCHED && !list);
    free(list);

    int64_t l = UNTOUCHED;
    good = is_integer(text, INT64_MIN, INT64_MAX, &number);
    REQUIRE(kvtree_util_get_int64(tree, "K", &l) == (good ? 0 : -EINVAL));
    REQUIRE(l == (good ? number : UNTOUCHED));
}

static void get_unsigned(const kvtree *tree, const char *text)
{
    wide number;
    unsigned long u = UNTOUCHED, bytes = UNTOUCHED, crc = UNTOUCHED;
    void *pointer = &number;
    int good = is_unsigned(text, ULONG_MAX, &number);
    REQUIRE(kvtree_util_get_unsigned_long(tree, "K", &u) == (good ? 0 : -EINVAL));
    REQUIRE(u == (good ? number : UNTOUCHED));
    REQUIRE(kvtree_util_get_bytecount(tree, "K", &bytes) == (good ? 0 : -EINVAL));
    REQUIRE(bytes == u);

    good = is_unsigned(text, UINT32_MAX, &number) ||
           is_hexadecimal(text, UINT32_MAX, &number);
    REQUIRE(kvtree_util_get_crc32(tree, "K", &crc) == (good ? 0 : -EINVAL));
    REQUIRE(crc == (good ? number : UNTOUCHED));

    good = is_hexadecimal(text, UINTPTR_MAX, &number);
    REQUIRE(kvtree_util_get_ptr(tree, "K", &pointer) == (good ? 0 : -EINVAL));
    REQUIRE(good ? (uintptr_t)pointer == (uintptr_t)number : pointer == &number);
}

/* long double, with its far wider range, shows whether the value is in range. At the
 * border of the range, and where digits get lost below DBL_MIN, both answers are right.
 */
static void get_double(const kvtree *tree, const char *text)
{
    const long double above = 0x1.fffffffffffff8p1023L;
    int nonzero;
    double value = -1;
    int rc = kvtree_util_get_double(tree, "K", &value);
    REQUIRE(rc == 0 || (rc == -EINVAL && value == -1));
    if (!is_decimal(text, &nonzero)) {
        REQUIRE(rc != 0);
        return;
    }
    long double exact = fabsl(strtold(text, NULL));
    if (exact > above) REQUIRE(rc != 0);
    if (exact < above && (exact >= DBL_MIN || !nonzero)) REQUIRE(rc == 0);
    if (rc == 0) REQUIRE(fabsl(fabsl(value) - exact) <= exact * DBL_EPSILON + DBL_MIN);
    if (rc == 0 && nonzero && value != 0) REQUIRE((value < 0) == (*text == '-'));
}

static void get_string(const kvtree *tree, const char *text)
{
    char *value = NULL;
    REQUIRE(kvtree_util_get_str(tree, "K", &value) == 0 && strcmp(value, text) == 0);
    REQUIRE(kvtree_get_val(tree, "K") == value);
    REQUIRE(kvtree_elem_get_first_val(tree, "K") == value);
    REQUIRE(kvtree_util_get_str(tree, "none", &value) == -ENOENT);
}

/* ---- setters ---- */

static void set_numbers(kvtree *tree, int64_t number)
{
    int i;
    int64_t l;
    unsigned long u, crc = (uint32_t)number;
    void *pointer, *address = (void *)(uintptr_t)number;
    REQUIRE(kvtree_util_set_int64(tree, "K", number) == 0);
    REQUIRE(kvtree_util_get_int64(tree, "K", &l) == 0 && l == number);
    REQUIRE(kvtree_util_set_int(tree, "K", (int)number) == 0);
    REQUIRE(kvtree_util_get_int(tree, "K", &i) == 0 && i == (int)number);
    REQUIRE(kvtree_util_set_bytecount(tree, "K", (unsigned long)number) == 0);
    REQUIRE(kvtree_util_get_bytecount(tree, "K", &u) == 0 && u == (unsigned long)number);
    REQUIRE(kvtree_util_set_crc32(tree, "K", crc) == 0);
    REQUIRE(strlen(kvtree_get_val(tree, "K")) == 10);
    REQUIRE(kvtree_util_get_crc32(tree, "K", &u) == 0 && u == crc);
    REQUIRE(kvtree_util_set_ptr(tree, "K", address) == 0);
    REQUIRE(kvtree_util_get_ptr(tree, "K", &pointer) == 0 && pointer == address);
    REQUIRE(kvtree_size(kvtree_get(tree, "K")) == 1);
}

static void set_double(kvtree *tree, double number)
{
    double back;
    int rc = kvtree_util_set_double(tree, "K", number);
    REQUIRE(rc == (isfinite(number) ? 0 : -EINVAL));
    if (rc) return;
    REQUIRE(kvtree_util_get_double(tree, "K", &back) == 0);
    REQUIRE(memcmp(&back, &number, sizeof back) == 0);
}

/* The path of a format, and the same keys one by one. */
static void set_path(kvtree *tree, const char *text, int64_t number, double real)
{
    char integer[24], hex[24], decimal[400];
    snprintf(integer, sizeof integer, "n%" PRId64, number);
    snprintf(hex, sizeof hex, "%x", (unsigned)number);
    snprintf(decimal, sizeof decimal, "%f", real);
    kvtree *end = kvtree_setf(tree, NULL, "PATH %s n%ld %x %f", text, (long)number,
                              (unsigned)number, real);
    kvtree *at = kvtree_get(kvtree_get(kvtree_get_kv(tree, "PATH", text), integer), hex);
    REQUIRE(end && kvtree_get(at, decimal) == end);
    REQUIRE(kvtree_getf(tree, "PATH %s n%lld %lx %lf", text, (long long)number,
                        (unsigned long)(unsigned)number, real) == end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t number = 0;
    double real = 0;
    char *text = malloc(size + 1);
    kvtree *tree = kvtree_new();
    REQUIRE(text && tree);
    if (size) memcpy(text, data, size);
    text[size] = 0;
    REQUIRE(kvtree_util_set_str(tree, "K", text) == 0);
    get_integers(tree, text);
    get_unsigned(tree, text);
    get_double(tree, text);
    get_string(tree, text);
    if (size >= sizeof number + sizeof real) {
        memcpy(&number, data, sizeof number);
        memcpy(&real, data + sizeof number, sizeof real);
    }
    set_path(tree, text, number, real);
    set_numbers(tree, number);
    set_double(tree, real);
    kvtree_delete(&tree);
    free(text);
    return 0;
}
