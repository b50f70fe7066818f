/* cli/smi.c - `koine smi`: shows what every device is doing, once or repeatedly. */
#include "cli/smi.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "rt/rt.h"

static volatile sig_atomic_t stopped; /* by SIGINT or SIGTERM */

static void stop(int number)
{
    (void)number;
    stopped = 1;
}

static void heed_signals(void)
{
    struct sigaction action = {.sa_handler = stop};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* In slices: a signal that arrives just before a sleep does not interrupt it. */
static void sleep_until(double when)
{
    for (double left = when - kn_clock_seconds(); left > 0 && !stopped; left = when - kn_clock_seconds()) {
        double slice = left < 0.1 ? left : 0.1;
        nanosleep(&(struct timespec){.tv_nsec = (long)(slice * 1e9)}, NULL);
    }
}

/* --- readings --------------------------------------------------------------------------------- */

typedef struct smi {
    kn_smi_row *rows;
    int count;
    bool json, wide, repeats, redraw;
} smi;

static int show(const smi *s)
{
    kn_text out = {0};
    for (int i = 0; i < s->count; i++)
        if (kn_device_usage(s->rows[i].device, &s->rows[i].usage) != KN_OK)
            return kn_report_error();
    if (s->redraw)
        kn_text_append(&out, "\033[H\033[J"); /* cursor home, clear to the end of the screen */
    if (s->json && !kn_smi_json(&out, s->rows, s->count, s->repeats)) {
        kn_text_free(&out);
        fprintf(stderr, "koine: out of host memory\n");
        return KN_EXIT_FAILED;
    }
    kn_page page = kn_page_of(STDOUT_FILENO); /* the terminal may have been resized */
    page.width = s->wide ? 0 : page.width;
    if (!s->json)
        kn_smi_table(&out, s->rows, s->count, page);
    return kn_print_text(&out);
}

static int watch(const smi *s, double seconds, long readings)
{
    double next = kn_clock_seconds();
    int status = KN_EXIT_DONE;
    for (long shown = 0; status == KN_EXIT_DONE && !stopped; shown++) {
        if (shown > 0 && !s->json && !s->redraw)
            printf("\n");
        status = show(s);
        if (status != KN_EXIT_DONE || (readings > 0 && shown + 1 == readings))
            break;
        next += seconds;
        sleep_until(next);
    }
    return status;
}

/* --- the command ------------------------------------------------------------------------------ */

static int refuse(const char *option, const char *value, const char *what)
{
    return kn_usage_error(kn_command_smi.usage, "koine smi: %s takes %s, not `%s`", option, what, value);
}

static int find_devices(smi *s, const char *wanted)
{
    kn_device *only = NULL;
    if (wanted && kn_device_find(&only, wanted) != KN_OK)
        return kn_report_error();
    if (kn_init() != KN_OK) /* says which package to install */
        return kn_report_error();
    s->count = wanted ? 1 : kn_device_count();
    s->rows = kn_calloc(KN_SMI_MAX, sizeof *s->rows);
    if (!s->rows)
        return kn_report_error();
    for (int i = 0; i < s->count; i++) {
        s->rows[i].device = wanted ? only : kn_device_at(i);
        kn_device_get_properties(s->rows[i].device, &s->rows[i].properties);
    }
    return -1;
}

static int run(int argc, char **argv)
{
    smi s = {0};
    const char *interval = NULL, *count = NULL, *wanted = NULL;
    const kn_option options[] = {{.name = "--json", .flag = &s.json},
                                 {.name = "--wide", .flag = &s.wide},
                                 {.name = "--watch", .value = &interval},
                                 {.name = "--count", .value = &count}};
    int status = kn_parse_options(&kn_command_smi, argc, argv, options, 4, &wanted, 1);
    if (status >= 0)
        return status;
    char *end;
    double seconds = interval ? strtod(interval, &end) : 1;
    if (interval && (end == interval || *end || !(seconds >= 0.1 && seconds <= 86400)))
        return refuse("--watch", interval, "seconds from 0.1 to 86400");
    long readings = count ? strtol(count, &end, 10) : 0;
    if (count && (end == count || *end || readings < 1))
        return refuse("--count", count, "a number of readings, 1 or more");
    status = find_devices(&s, wanted);
    if (status < 0) {
        s.repeats = interval || count;
        s.redraw = s.repeats && !s.json && kn_terminal_redraws(STDOUT_FILENO);
        heed_signals();
        status = s.repeats ? watch(&s, seconds, readings) : show(&s);
    }
    kn_free(s.rows);
    return status;
}

const kn_command kn_command_smi = {
    .name = "smi",
    .summary = "show what each device is doing: memory, load, temperature, power, processes",
    .usage = "usage: koine smi [--watch SECONDS] [--count N] [--json] [--wide] [DEVICE]\n\n"
             "Shows memory, load, temperature, power and clock of every device, and the processes that use it, as far "
             "as the driver reports them; a dash marks an unknown figure.\n\n"
             "  DEVICE           only this device, named as for `koine devices`\n"
             "  --watch SECONDS  repeat at this interval, until Ctrl-C; redrawn on a terminal, appended "
             "elsewhere\n"
             "  --count N        stop after N readings (one per second unless --watch is given)\n"
             "  --json           print JSON; with --watch or --count one object per reading, each on a line\n"
             "  --wide           print all columns, however narrow the terminal is\n\n"
             "Exit status: 0 done (also after Ctrl-C), 1 no (such) device, 2 wrong usage.\n",
    .run = run,
};
