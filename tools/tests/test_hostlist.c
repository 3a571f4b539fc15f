/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of hosts: their meaning, their short form, and invalid lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "common/errtext.h"
#include "lib/hostlist.h"
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes all names, separated by blanks, to text. */
static const char *names_of(const hostlist *list, char text[1024])
{
    size_t n = 0;
    text[0] = 0;
    for (int i = 0; i < list->count; i++)
        n += (size_t)snprintf(text + n, 1024 - n, "%s%s", i ? " " : "", list->names[i]);
    return text;
}

static hostlist parsed(const char *text)
{
    kvtree_error err = {""};
    hostlist list = {0, NULL};
    if (hostlist_parse(text, &list, &err) != 0) fail_msg("%s: %s", text, err.text);
    return list;
}

static const struct {
    const char *text, *names, *shortest;
} good[] = {
    {"", "", ""},
    {" \n\t", "", ""},
    {"atlas3", "atlas3", "atlas3"},
    {"atlas[3,5-7,9-11]", "atlas3 atlas5 atlas6 atlas7 atlas9 atlas10 atlas11",
     "atlas[3,5-7,9-11]"},
    {"a[3]", "a3", "a3"},
    {"a, b ,c d\te\nf", "a b c d e f", "a,b,c,d,e,f"},
    {"b2,a1,b1", "b2 a1 b1", "a1,b[1-2]"},
    {"n[10,9,9]", "n10 n9 n9", "n[9,9-10]"},
    /* digits stay as they are */
    {"n[08-11]", "n08 n09 n10 n11", "n[08-11]"},
    {"n[8-11]", "n8 n9 n10 n11", "n[8-11]"},
    {"n[098-101,8]", "n098 n099 n100 n101 n8", "n[8,098-101]"},
    {"n[1,01,001]", "n1 n01 n001", "n[1,01,001]"},
    {"n[0-1]", "n0 n1", "n[0-1]"},
    {"n[00-1]", "n00 n01", "n[00-01]"},
    {"n[99-100]", "n99 n100", "n[99-100]"},
    {"n[999999999999999998-999999999999999999]",
     "n999999999999999998 n999999999999999999",
     "n[999999999999999998-999999999999999999]"},
    {"n1234567890123456789,n1234567890123456790",
     "n1234567890123456789 n1234567890123456790",
     "n1234567890123456789,n1234567890123456790"},
    /* several brackets, and names around them */
    {"r[1-2]n[1-2]-ib", "r1n1-ib r1n2-ib r2n1-ib r2n2-ib", "r1n[1-2]-ib,r2n[1-2]-ib"},
    {"n[1-2].site,n[1-2].other", "n1.site n2.site n1.other n2.other",
     "n[1-2].other,n[1-2].site"},
    {"[1-3]", "1 2 3", "[1-3]"},
    {"1[0-1]", "10 11", "[10-11]"},
    {"login,login1,log", "login login1 log", "log,login,login1"},
    {"A_b-c.d", "A_b-c.d", "A_b-c.d"},
};

static void expand_and_compress(void **state)
{
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char text[1024];
        hostlist list = parsed(good[i].text);
        assert_string_equal(names_of(&list, text), good[i].names);
        char *shortest = hostlist_compress(&list);
        assert_string_equal(shortest, good[i].shortest);
        free(shortest);
        hostlist_done(&list);
    }
}

static void no_lists(void **state)
{
    static const struct {
        const char *text, *reason;
    } bad[] = {{",", "a name is missing at byte 1"},
               {"a,", "a name is missing at byte 3"},
               {"a, ,b", "a name is missing at byte 4"},
               {",a", "a name is missing"},
               {"a[]", "no number of at most 18 digits at byte 3"},
               {"a[1", "a bracket without its end at byte 4"},
               {"a[1,", "no number of at most 18 digits at byte 5"},
               {"a[1-", "no number of at most 18 digits at byte 5"},
               {"a[1-2", "a bracket without its end"},
               {"a[1 ]", "a bracket without its end"},
               {"a[1-2-3]", "a bracket without its end"},
               {"a[-1]", "no number"},
               {"a[b]", "no number"},
               {"a[2-1]", "a range that goes down at byte 3"},
               {"a[1]]", "no character of a name at byte 5"},
               {"a]", "no character of a name at byte 2"},
               {"a[1[2]]", "a bracket without its end"},
               {"-a", "no character of a name at byte 1"},
               {"a b/c", "no character of a name at byte 4"},
               {"a$b", "no character"},
               {"a'", "no character"},
               {"a\001", "no character"},
               {"\303\244", "no character"},
               {"a[1234567890123456789]", "no number of at most 18 digits"},
               {"a[1-2][3", "a bracket without its end"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[1024];
        kvtree_error err = {""};
        hostlist list = parsed("x,y");
        if (hostlist_parse(bad[i].text, &list, &err) != -EINVAL)
            fail_msg("%s is a list", bad[i].text);
        if (!strstr(err.text, bad[i].reason)) fail_msg("%s: %s", bad[i].text, err.text);
        assert_string_equal(names_of(&list, text), "x y"); /* unchanged */
        hostlist_done(&list);
    }
}

/* A short text cannot produce more hosts than a list may have. */
static void bounds(void **state)
{
    static const char *const many[] = {"n[0-262144]", "n[0-999999999999999999]",
                                       "a[1-999][1-999]", "n[0-262143],n"};
    char name[HOSTLIST_NAME_SIZE + 8];
    kvtree_error err = {""};
    hostlist list = {0, NULL};
    for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
        assert_int_equal(hostlist_parse(many[i], &list, &err), -E2BIG);
        assert_int_equal(list.count, 0);
    }
    assert_int_equal(hostlist_parse("n[0-262143]", &list, &err), 0);
    assert_int_equal(list.count, HOSTLIST_MAX);
    char *text = hostlist_compress(&list);
    assert_string_equal(text, "n[0-262143]");
    free(text);
    hostlist_done(&list);
    /* the longest name, plain and with a number; and one byte more */
    memset(name, 'n', sizeof name);
    name[HOSTLIST_NAME_SIZE - 1] = 0;
    assert_int_equal(hostlist_parse(name, &list, &err), 0);
    strcpy(name + HOSTLIST_NAME_SIZE - 3, "[10]");
    assert_int_equal(hostlist_parse(name, &list, &err), 0);
    assert_int_equal(strlen(list.names[1]), HOSTLIST_NAME_SIZE - 1);
    strcpy(name + HOSTLIST_NAME_SIZE - 3, "[100]");
    assert_int_equal(hostlist_parse(name, &list, &err), -EINVAL);
    memset(name, 'n', sizeof name);
    name[HOSTLIST_NAME_SIZE] = 0;
    assert_int_equal(hostlist_parse(name, &list, &err), -EINVAL);
    assert_int_equal(list.count, 2);
    hostlist_done(&list);
}

static void sets(void **state)
{
    static const struct {
        const char *a, *b, *minus, *both, *either;
    } cases[] = {
        {"atlas[3,5-7,9-11]", "atlas[5,7,20]", "atlas3 atlas6 atlas9 atlas10 atlas11",
         "atlas5 atlas7", "atlas3 atlas5 atlas6 atlas7 atlas9 atlas10 atlas11 atlas20"},
        {"", "a", "", "", "a"},
        {"a", "", "a", "", "a"},
        {"b,a,b", "c,a,c", "b b", "a", "b a b c c"},
        {"n1,n01", "n01", "n1", "n01", "n1 n01"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        hostlist a = parsed(cases[i].a), b = parsed(cases[i].b);
        hostlist r[3] = {{0, NULL}, {0, NULL}, {0, NULL}};
        assert_int_equal(hostlist_minus(&a, &b, &r[0]), 0);
        assert_int_equal(hostlist_intersect(&a, &b, &r[1]), 0);
        assert_int_equal(hostlist_unite(&a, &b, &r[2]), 0);
        assert_string_equal(names_of(&r[0], text), cases[i].minus);
        assert_string_equal(names_of(&r[1], text), cases[i].both);
        assert_string_equal(names_of(&r[2], text), cases[i].either);
        for (int k = 0; k < 3; k++)
            hostlist_done(&r[k]);
        hostlist_done(&a);
        hostlist_done(&b);
    }
}

static void each_once(void **state)
{
    char text[1024];
    hostlist list = parsed("n2,n1,n2,n[1-3],n2"), once = {0, NULL};
    assert_int_equal(hostlist_once(&list, &once), 0);
    assert_string_equal(names_of(&once, text), "n2 n1 n3");
    hostlist_done(&list);
    hostlist_done(&once);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expand_and_compress),
        cmocka_unit_test(no_lists),
        cmocka_unit_test(bounds),
        cmocka_unit_test(sets),
        cmocka_unit_test(each_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
