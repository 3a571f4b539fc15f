/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRIVATE_SERVER_H
#define PRIVATE_SERVER_H

/* A MariaDB server of a test's own: data and socket lie in the directory of the test, no
 * port is open, and it ends with the test.
 *
 *     if (!server_can_run()) skip();
 *     server_start(&server, folder);        database and user "scr", password "secret"
 *     server_query(&server, "SELECT ...")
 *     server_stop(&server);                                                            */

#include "records.h"

#include <mysql.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

struct server {
    char folder[80], socket[100];
    pid_t pid;
};

/* Its path in $PATH or where daemons lie; 0 if it is not installed. */
static inline int server_program(const char *name, char path[400])
{
    char folders[4000];
    const char *in_path = getenv("PATH");
    snprintf(folders, sizeof folders, "%s:/usr/sbin:/usr/local/sbin",
             in_path ? in_path : "");
    char *folder, *rest = folders;
    while ((folder = strsep(&rest, ":"))) {
        snprintf(path, 400, "%.300s/%s", folder, name);
        if (access(path, X_OK) == 0) return 1;
    }
    return 0;
}

static inline int server_can_run(void)
{
    char path[400];
    int can = server_program("mariadbd", path) &&
              server_program("mariadb-install-db", path) &&
              server_program("my_print_defaults", path);
    if (!can) print_message("no MariaDB server is installed here\n");
    return can;
}

/* Starts a program whose output goes to a file in the directory. */
static inline pid_t server_spawn(const struct server *server,
                                 const char *const arguments[])
{
    char path[400], output[120];
    assert_true(server_program(arguments[0], path));
    snprintf(output, sizeof output, "%s/output", server->folder);
    pid_t pid = fork();
    if (pid) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int fd = open(output, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    unsetenv("LD_PRELOAD");
    execv(path, (char *const *)(uintptr_t)arguments);
    _exit(127);
}

static inline void server_print_output(const struct server *server)
{
    char command[120];
    snprintf(command, sizeof command, "tail -n 20 %s/output >&2", server->folder);
    if (system(command) != 0) print_message("no output\n");
}

/* A connection as root; NULL while the server does not answer. */
static inline MYSQL *server_connect(const struct server *server, const char *database)
{
    MYSQL *mysql = mysql_init(NULL);
    if (mysql_real_connect(mysql, NULL, "root", NULL, database, 0, server->socket,
                           CLIENT_MULTI_STATEMENTS))
        return mysql;
    mysql_close(mysql);
    return NULL;
}

/* Makes the statements, which are divided by semicolons. */
static inline void server_do(const struct server *server, const char *database,
                             const char *statements)
{
    MYSQL *mysql = server_connect(server, database);
    assert_non_null(mysql);
    int rc = mysql_query(mysql, statements);
    for (; !rc; rc = mysql_next_result(mysql))
        mysql_free_result(mysql_store_result(mysql));
    if (rc > 0) fail_msg("%s", mysql_error(mysql));
    mysql_close(mysql);
}

/* The number that a query gives. */
static inline long server_number(const struct server *server, const char *query)
{
    MYSQL *mysql = server_connect(server, "scr");
    assert_non_null(mysql);
    if (mysql_query(mysql, query) != 0) fail_msg("%s: %s", query, mysql_error(mysql));
    MYSQL_RES *result = mysql_store_result(mysql);
    MYSQL_ROW row = mysql_fetch_row(result);
    long number = row && row[0] ? atol(row[0]) : -1;
    mysql_free_result(result);
    mysql_close(mysql);
    return number;
}

/* Starts the server on data that is there, and waits until it answers. */
static inline void server_run(struct server *server)
{
    char data[120], sock[120], pid_file[120], no_root[] = "--user=root";
    snprintf(data, sizeof data, "--datadir=%s/data", server->folder);
    snprintf(sock, sizeof sock, "--socket=%s", server->socket);
    snprintf(pid_file, sizeof pid_file, "--pid-file=%s/pid", server->folder);
    const char *const arguments[] = {"mariadbd",
                                     "--no-defaults",
                                     data,
                                     sock,
                                     pid_file,
                                     "--skip-networking",
                                     "--innodb-buffer-pool-size=8M",
                                     "--innodb-log-file-size=8M",
                                     "--innodb-flush-method=nosync",
                                     "--innodb-flush-log-at-trx-commit=0",
                                     "--skip-log-bin",
                                     geteuid() == 0 ? no_root : NULL,
                                     NULL};
    server->pid = server_spawn(server, arguments);
    for (int i = 0; i < 2400; i++) {
        MYSQL *mysql = server_connect(server, NULL);
        if (mysql) {
            mysql_close(mysql);
            return;
        }
        if (waitpid(server->pid, NULL, WNOHANG) == server->pid) break;
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    server_print_output(server);
    fail_msg("the server did not start");
}

static inline void server_start(struct server *server, const char *folder)
{
    char data[120], no_root[] = "--user=root";
    int status;
    snprintf(server->folder, sizeof server->folder, "%s", folder);
    snprintf(server->socket, sizeof server->socket, "%s/sock", folder);
    snprintf(data, sizeof data, "--datadir=%s/data", folder);
    const char *const arguments[] = {"mariadb-install-db",
                                     "--no-defaults",
                                     data,
                                     "--auth-root-authentication-method=normal",
                                     "--skip-test-db",
                                     "--skip-name-resolve",
                                     "--force", /* where the host's name is unknown */
                                     geteuid() == 0 ? no_root : NULL,
                                     NULL};
    pid_t pid = server_spawn(server, arguments);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (status) server_print_output(server);
    assert_int_equal(status, 0);
    server_run(server);
    server_do(server, NULL,
              "CREATE DATABASE scr; CREATE USER scr@localhost IDENTIFIED BY 'secret';"
              "GRANT INSERT ON scr.* TO scr@localhost");
}

/* Until SIGCONT. Its threads run on until one of them sees the signal, and must not
 * answer meanwhile. */
static inline void server_stand_still(const struct server *server)
{
    int status = 0;
    assert_int_equal(kill(server->pid, SIGSTOP), 0);
    assert_int_equal(waitpid(server->pid, &status, WUNTRACED), server->pid);
    assert_true(WIFSTOPPED(status));
}

/* By SIGKILL: nothing of it is needed any more. */
static inline void server_stop(struct server *server)
{
    if (server->pid <= 0) return;
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
    server->pid = 0;
}

#endif
