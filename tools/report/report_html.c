/* SPDX-License-Identifier: BSD-3-Clause */
/* The report as one HTML page, with pictures in SVG; see report.h. Colors are variables,
 * for light and dark screens. */
#include "lib/tool_time.h"
#include "report/report.h"
#include "report/status.h"
#include <inttypes.h>
#include <string.h>

enum { WIDTH = 1000, BAR = 16, ROWS = 200 };

static const char *const html_kinds[LEDGER_KINDS] = {"starting",
                                                     "useful computing",
                                                     "writing to the cache",
                                                     "waiting for a flush",
                                                     "reading a checkpoint",
                                                     "lost computing"};

static const char html_head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<title>SCR report</title>\n<style>\n"
    ":root{color-scheme:light dark;--back:#fff;--text:#1b1f24;--faint:#59636e;"
    "--line:#d1d9e0;--start:#8c959f;--compute:#2da44e;--output:#0969da;--flush:#8250df;"
    "--restart:#bf8700;--lost:#cf222e}\n"
    "@media (prefers-color-scheme:dark){:root{--back:#0d1117;--text:#e6edf3;"
    "--faint:#9198a1;--line:#3d444d;--start:#656c76;--compute:#3fb950;--output:#4493f8;"
    "--flush:#ab7df8;--restart:#d29922;--lost:#f85149}}\n"
    "body{background:var(--back);color:var(--text);font:15px/1.45 system-ui,sans-serif;"
    "max-width:1100px;margin:0 auto;padding:16px}\n"
    "h1{font-size:22px}h2{font-size:17px;margin:28px 0 8px}\n"
    ".faint{color:var(--faint)}.wide{overflow-x:auto}\n"
    ".cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(190px,44%),"
    "1fr));"
    "gap:8px}\n"
    ".card{border:1px solid var(--line);border-radius:6px;padding:8px 12px}"
    ".card b{display:block;font-size:20px}\n"
    "table{border-collapse:collapse;width:100%}th,td{text-align:right;padding:3px 8px;"
    "border-bottom:1px solid var(--line);white-space:nowrap}"
    "th:first-child,td:first-child,.runs :is(th,td):nth-child(-n+3){text-align:left}\n"
    ".run{display:grid;grid-template-columns:210px 1fr;align-items:center;"
    "margin:4px 0}.run span{font-size:13px}.bar{display:flex;align-items:center;gap:4px}"
    ".bar svg{height:16px}.bar b{color:var(--lost);line-height:1}"
    ".axis{display:flex;justify-content:space-between;width:96%}\n"
    "@media (max-width:700px){.run{grid-template-columns:1fr}"
    ".levels :is(th,td):nth-child(n+6),.runs :is(th,td):nth-child(-n+2),"
    ".runs :is(th,td):nth-child(5),.runs :is(th,td):nth-child(6),"
    ".runs :is(th,td):nth-child(7){display:none}}\n"
    ".key{display:inline-block;margin-right:14px}.key i{display:inline-block;width:11px;"
    "height:11px;margin-right:5px;border-radius:2px}\n"
    ".k0{fill:var(--start);background:var(--start)}"
    ".k1{fill:var(--compute);background:var(--compute)}"
    ".k2{fill:var(--output);background:var(--output)}"
    ".k3{fill:var(--flush);background:var(--flush)}"
    ".k4{fill:var(--restart);background:var(--restart)}"
    ".k5{fill:var(--lost);background:var(--lost)}\n"
    "</style>\n</head>\n<body>\n";

static void html_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (strchr("<>&\"'", c) || c < 32 || c == 127)
            fprintf(out, "&#%d;", c < 32 || c == 127 ? 0xfffd : c);
        else
            fputc(c, out);
    }
}

/* ---- figures ---- */

static void html_card(FILE *out, const char *value, const char *what)
{
    fprintf(out, "<div class=\"card\"><b>%s</b>%s</div>\n", value, what);
}

static void html_card_span(FILE *out, double seconds, const char *what)
{
    char text[SCR_AMOUNT_SIZE];
    html_card(out, seconds < 0 ? "unknown" : scr_text_span(seconds, text), what);
}

static void html_cards(FILE *out, const report *r)
{
    const scr_ledger_sum *s = &r->sum;
    char text[SCR_AMOUNT_SIZE] = "unknown";
    fprintf(out, "<div class=\"cards\">\n");
    if (s->efficiency >= 0) snprintf(text, sizeof text, "%.1f %%", s->efficiency * 100);
    html_card(out, text, "efficiency");
    html_card_span(out, s->total, "total time");
    html_card_span(out, s->kinds[LEDGER_COMPUTE], html_kinds[LEDGER_COMPUTE]);
    html_card_span(out, s->kinds[LEDGER_LOST] + s->down,
                   "lost to failures, with time between runs");
    html_card_span(out, s->kinds[LEDGER_OUTPUT] + s->kinds[LEDGER_FLUSH],
                   "checkpoints and other outputs");
    snprintf(text, sizeof text, "%d of %d", s->interrupted, s->runs);
    html_card(out, text, "runs interrupted");
    html_card_span(out, s->mtbf, "mean time between failures");
    html_card_span(out, s->interval, "mean interval between checkpoints");
    html_card_span(out, s->best, "best interval");
    html_card_span(out, s->saved, "savings by the best interval (estimate)");
    fprintf(out, "</div>\n");
}

/* ---- time lines ---- */

void report_join_spans(const scr_ledger *l, int run, double least, report_draw *draw,
                       void *arg)
{
    double sums[LEDGER_KINDS] = {0}, begin = 0, end = 0;
    int most = 0;
    for (int i = 0; i < l->span_count; i++) {
        const scr_ledger_span *s = &l->spans[i];
        if (s->run != run) continue;
        sums[s->kind] += (double)(s->to - s->from) / 1e6;
        end = (double)(s->to - l->runs[run].start) / 1e6;
        if (sums[s->kind] > sums[most]) most = (int)s->kind;
        if (end - begin < least) continue;
        draw(arg, (scr_ledger_kind)most, begin, end);
        memset(sums, 0, sizeof sums);
        begin = end;
        most = 0;
    }
    if (end > begin) draw(arg, (scr_ledger_kind)most, begin, end);
}

typedef struct html_row {
    FILE *out;
    double scale; /* columns per second */
} html_row;

static void html_draw(void *arg, scr_ledger_kind kind, double from, double to)
{
    const html_row *row = arg;
    char text[SCR_AMOUNT_SIZE];
    fprintf(row->out,
            "<rect class=\"k%d\" x=\"%.1f\" width=\"%.1f\" height=\"%d\">"
            "<title>%s: %s</title></rect>\n",
            (int)kind, from * row->scale, (to - from) * row->scale, BAR, html_kinds[kind],
            scr_text_span(to - from, text));
}

static double html_longest(const scr_ledger *l, int first)
{
    double longest = 1e-6;
    for (int i = first; i < l->run_count; i++) {
        double seconds = (double)(l->runs[i].end - l->runs[i].start) / 1e6;
        if (seconds > longest) longest = seconds;
    }
    return longest;
}

/* Writes the bar of a run. Bars leave room for a mark at the end. */
static void html_run(FILE *out, const scr_ledger *l, int run, double longest)
{
    char when[TOOL_TIME_SIZE];
    html_row row = {out, WIDTH / longest};
    const scr_ledger_run *r = &l->runs[run];
    const double seconds = (double)(r->end - r->start) / 1e6;
    tool_time_text(r->start / 1000000, when);
    fprintf(out,
            "<div class=\"run\"><span>%s</span><div class=\"bar\"><svg role=\"img\" "
            "style=\"width:%.2f%%\" viewBox=\"0 0 %.1f %d\" "
            "preserveAspectRatio=\"none\">\n",
            when, 96 * seconds / longest, seconds * row.scale, BAR);
    report_join_spans(l, run, 1 / row.scale, html_draw, &row);
    fprintf(out, "</svg>%s</div></div>\n",
            r->how == LEDGER_INTERRUPTED ? "<b title=\"interrupted\">&#10005;</b>" : "");
}

static void html_rows(FILE *out, const scr_ledger *l, int first)
{
    char text[SCR_AMOUNT_SIZE];
    const double longest = html_longest(l, first);
    for (int i = first; i < l->run_count; i++)
        html_run(out, l, i, longest);
    fprintf(out,
            "<div class=\"run\"><span></span><div class=\"axis\"><span>0</span>"
            "<span>%s</span></div></div>\n",
            scr_text_span(longest, text));
}

static void html_time_lines(FILE *out, const report *r)
{
    const scr_ledger *l = r->ledger;
    int first = l->run_count > ROWS ? l->run_count - ROWS : 0;
    fprintf(out, "<h2>Time line</h2>\n<p>");
    for (int i = 0; i < LEDGER_KINDS; i++)
        fprintf(out, "<span class=\"key\"><i class=\"k%d\"></i>%s</span>\n", i,
                html_kinds[i]);
    fprintf(out, "</p>\n");
    if (first)
        fprintf(out, "<p class=\"faint\">The last %d of %d runs.</p>\n", ROWS,
                l->run_count);
    html_rows(out, l, first);
}

/* ---- tables ---- */

static void html_rate(FILE *out, double rate)
{
    char text[SCR_AMOUNT_SIZE];
    fprintf(out, "<td>%s/s</td>", scr_text_bytes(rate, text));
}

/* Draws the range from minimum to maximum, with a mark at the median. */
static void html_spread(FILE *out, const double spread[3], double most)
{
    double scale = 300 / most;
    fprintf(
        out,
        "<td><svg viewBox=\"0 0 300 14\" style=\"width:100%%;min-width:120px\">"
        "<rect class=\"k2\" x=\"%.1f\" y=\"5\" width=\"%.1f\" height=\"4\"/>"
        "<rect class=\"k2\" x=\"%.1f\" y=\"1\" width=\"4\" height=\"12\"/></svg></td>",
        spread[0] * scale, (spread[2] - spread[0]) * scale + 1,
        spread[1] * scale * 0.987);
}

static void html_levels(FILE *out, const report *r)
{
    double spread[LEDGER_LEVELS][3] = {{0}}, most = 0;
    char text[SCR_AMOUNT_SIZE];
    for (int i = 0; i < LEDGER_LEVELS; i++) {
        scr_ledger_moves *m = &r->ledger->moves[i];
        if (m->rate_count)
            scr_ledger_spread(m, &spread[i][0], &spread[i][1], &spread[i][2]);
        if (spread[i][2] > most) most = spread[i][2];
    }
    fprintf(out, "<h2>Bandwidth</h2>\n<div class=\"wide\"><table "
                 "class=\"levels\"><tr><th>level</th>"
                 "<th>datasets</th><th>failed</th><th>bytes</th><th>mean</th><th>min</th>"
                 "<th>median</th><th>max</th><th></th></tr>\n");
    for (int i = 0; i < LEDGER_LEVELS; i++) {
        const scr_ledger_moves *m = &r->ledger->moves[i];
        if (!m->count && !m->failed) continue;
        fprintf(out, "<tr><td>%s</td><td>%d</td><td>%d</td><td>%s</td>",
                scr_ledger_level_names[i], m->count, m->failed,
                scr_text_bytes(m->bytes, text));
        if (m->rate_count) {
            html_rate(out, m->bytes / m->seconds);
            for (int k = 0; k < 3; k++)
                html_rate(out, spread[i][k]);
            html_spread(out, spread[i], most);
        }
        fprintf(out, "</tr>\n");
    }
    fprintf(out, "</table></div>\n");
}

static void html_runs(FILE *out, const report *r)
{
    char when[TOOL_TIME_SIZE], text[SCR_AMOUNT_SIZE];
    fprintf(out, "<h2>Runs</h2>\n<div class=\"wide\"><table "
                 "class=\"runs\"><tr><th>run</th><th>job</th>"
                 "<th>began</th><th>time</th><th>nodes</th><th>ranks</th>"
                 "<th>checkpoints</th><th>end</th></tr>\n");
    for (int i = 0; i < r->ledger->run_count; i++) {
        const scr_ledger_run *run = &r->ledger->runs[i];
        tool_time_text(run->start / 1000000, when);
        fprintf(out, "<tr><td>");
        html_text(out, run->id);
        fprintf(out, "</td><td>");
        html_text(out, run->job);
        fprintf(out,
                "</td><td>%s</td><td>%s</td><td>%" PRId64 "</td><td>%" PRId64
                "</td><td>%d</td><td>%s</td></tr>\n",
                when, scr_text_span((double)(run->end - run->start) / 1e6, text),
                run->nodes, run->ranks, run->checkpoints, scr_ledger_end_names[run->how]);
    }
    fprintf(out, "</table></div>\n");
}

void report_write_html(FILE *out, const report *r)
{
    char when[TOOL_TIME_SIZE];
    fputs(html_head, out);
    fprintf(out, "<h1>SCR report</h1>\n<p class=\"faint\">");
    html_text(out, r->prefix);
    tool_time_text(r->ledger->last / 1000000, when);
    fprintf(out, "<br>up to %s</p>\n", when);
    html_cards(out, r);
    html_time_lines(out, r);
    html_levels(out, r);
    html_runs(out, r);
    fputs("</body>\n</html>\n", out);
}
