/* SPDX-License-Identifier: BSD-3-Clause */
/* Many worlds; see trials.h. */
#include "trials.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sim
{

/* Seconds of CPU time after which a world is considered to hang: most take less than 0.1,
 * however busy the machine is. */
static constexpr rlim_t PATIENCE = 60;

namespace
{
struct Child {
    pid_t pid;
    int out; /* descriptor of its output */
};

Child start(const std::function<void()> &work)
{
    int ends[2];
    fflush(nullptr);
    if (pipe(ends) != 0) abort();
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        const struct rlimit limit = {PATIENCE, PATIENCE + 1};
        setrlimit(RLIMIT_CPU, &limit);
        work();
        _exit(2);
    }
    close(ends[1]);
    return {pid, ends[0]};
}

/* Ends a world; its single line is shorter than the capacity of a pipe. */
Outcome end(uint64_t seed, int out, int status)
{
    char text[4096];
    const ssize_t n = read(out, text, sizeof text - 1);
    close(out);
    text[n > 0 ? n : 0] = 0;
    text[strcspn(text, "\n")] = 0;
    Outcome outcome{seed, status == 0, text};
    if (!outcome.good && outcome.text.empty())
        outcome.text =
            "seed " + std::to_string(seed) + ": FAILED: " +
            (WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                 : "status " + std::to_string(WEXITSTATUS(status)));
    return outcome;
}
} // namespace

void Trials::run(uint64_t from, uint64_t to,
                 const std::function<bool(const Outcome &)> &report) const
{
    std::map<pid_t, std::pair<uint64_t, int>> running;
    while (from < to || !running.empty()) {
        if (from < to && static_cast<int>(running.size()) < jobs) {
            const uint64_t seed = from++;
            const Child child = start([&] { play(seed, Part{}); });
            running[child.pid] = {seed, child.out};
            continue;
        }
        int status;
        const pid_t pid = wait(&status);
        if (pid < 0) break;
        const auto [seed, out] = running[pid];
        running.erase(pid);
        if (!report(end(seed, out, status))) to = from;
    }
}

/* ---- a campaign ---- */

static constexpr uint64_t BLOCK = 100;

int Trials::campaign(const char *file, uint64_t to) const
{
    unsigned long done = 0, seed;
    int failed = 0;
    char line[5000];
    FILE *state = fopen(file, "a+");
    if (!state) return perror(file), -1;
    while (fgets(line, sizeof line, state)) {
        if (sscanf(line, "done: %lu", &seed) == 1) done = seed;
        failed += strncmp(line, "seed ", 5) == 0;
    }
    while (done < to) {
        const uint64_t next = done + BLOCK < to ? done + BLOCK : to;
        run(done, next, [&](const Outcome &o) {
            if (!o.good) fprintf(state, "%s\n", o.text.c_str());
            failed += !o.good;
            return true;
        });
        done = next;
        fprintf(state, "done: %lu\n", done);
        fflush(state);
    }
    fclose(state);
    return failed;
}

/* ---- reduced worlds ---- */

Outcome Trials::one(uint64_t seed, const Part &part) const
{
    const Child child = start([&] { play(seed, part); });
    int status = 0;
    waitpid(child.pid, &status, 0);
    return end(seed, child.out, status);
}

/* Returns the reason without numbers and without the figures after it. */
static std::string reason_of(const Outcome &outcome)
{
    std::string reason;
    for (char c : outcome.text.substr(0, outcome.text.rfind(" (")))
        if (!isdigit(static_cast<unsigned char>(c))) reason += c;
    return reason;
}

bool Trials::is_same(uint64_t seed, const Part &part, const std::string &reason) const
{
    const Outcome outcome = one(seed, part);
    return !outcome.good && reason_of(outcome) == reason;
}

/* Returns the parts that lack one thing more. */
static std::vector<Part> smaller(const Story &story, const Part &part)
{
    std::vector<Part> list;
    const int runs = static_cast<int>(story.runs.size());
    auto add = [&](auto change) {
        Part less = part;
        change(less);
        list.push_back(less);
    };
    for (int n = 1; n < runs && n < part.runs; n++)
        add([n](Part &p) { p.runs = n; });
    for (int n = 1; n < story.nodes && n < part.nodes; n++)
        add([n](Part &p) { p.nodes = n; });
    for (int n = 1; n < story.ranks_per_node && n < part.ranks_per_node; n++)
        add([n](Part &p) { p.ranks_per_node = n; });
    for (const Run &run : story.runs) {
        for (const Strike &s : run.strikes)
            if (!part.without_strikes.count(s.number))
                add([&](Part &p) { p.without_strikes.insert(s.number); });
        for (const Step &s : run.steps)
            if (!part.without_steps.count(s.number))
                add([&](Part &p) { p.without_steps.insert(s.number); });
    }
    for (const auto &[name, value] : story.parameters)
        if (is_dispensable(name) && !part.without.count(name))
            add([&](Part &p) { p.without.insert(name); });
    for (const char *what : {"SCR_RESTART_RANKS", "deaths"})
        if (story.elastic && !part.without.count(what))
            add([what](Part &p) { p.without.insert(what); });
    if (story.shared) add([](Part &p) { p.without.insert("shared"); });
    return list;
}

Part Trials::shrink(const Story &story, Part part) const
{
    const std::string reason = reason_of(one(story.seed, part));
    for (bool changed = !reason.empty(); changed;) {
        changed = false;
        Story now = story;
        reduce(now, part);
        for (const Part &less : smaller(now, part)) {
            if (!is_same(story.seed, less, reason)) continue;
            part = less;
            changed = true;
            break;
        }
    }
    return part;
}

} // namespace sim
