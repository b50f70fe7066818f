/* watch/usage/host.c - a CPU device's figures: those of the host's processor and memory.
 *
 * Load and power are differences of counters: of /proc/stat (time in each state) and of RAPL's energy meters
 * (Documentation/power/powercap), which most systems show to root only. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/system.h"
#include "base/threads.h"
#include "watch/usage/usage.h"

#define INTERVAL 0.1 /* seconds between two readings at least: the counters of /proc/stat tick every 10 ms */

/* --- counters --------------------------------------------------------------------------------- */

typedef struct reading {
    double seconds;           /* monotonic time; 0: there is none */
    double busy, total;       /* ticks; NAN: unknown */
    double joules, range;     /* of all packages; the meters wrap at `range` */
    char root[KN_USAGE_PATH]; /* the root of these readings */
} reading;

static struct {
    kn_mutex lock;
    reading last;
    double load, power; /* from the last two readings */
} meter = {.lock = KN_MUTEX_INIT};

/* "cpu  user nice system idle iowait irq softirq steal guest guest_nice": idle and iowait are rest; guest time is in
 * user time already. */
static void read_times(reading *r, const char *root)
{
    char path[KN_USAGE_PATH], line[256];
    double t[8] = {0};
    r->busy = r->total = NAN;
    if (!kn_usage_read_line(kn_usage_path(path, root, "/proc/stat"), line, sizeof line) ||
        sscanf(line, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]) < 4)
        return;
    r->busy = t[0] + t[1] + t[2] + t[5] + t[6] + t[7];
    r->total = r->busy + t[3] + t[4];
}

static void read_energy(reading *r, const char *root)
{
    char path[KN_USAGE_PATH];
    r->joules = NAN;
    r->range = 0;
    for (int package = 0; package < 64; package++) {
        double joules = kn_usage_read_scaled(
            kn_usage_path(path, root, "/sys/class/powercap/intel-rapl:%d/energy_uj", package), 1e-6);
        if (isnan(joules))
            break;
        r->joules = (package > 0 ? r->joules : 0) + joules;
        r->range += kn_usage_read_scaled(
            kn_usage_path(path, root, "/sys/class/powercap/intel-rapl:%d/max_energy_range_uj", package), 1e-6);
    }
}

static reading read_counters(const char *root)
{
    reading r = {.seconds = kn_clock_seconds()};
    snprintf(r.root, sizeof r.root, "%s", root);
    read_times(&r, root);
    read_energy(&r, root);
    return r;
}

/* NAN if a counter is missing or did not change. */
static void compare(const reading *before, const reading *after)
{
    double total = after->total - before->total, joules = after->joules - before->joules;
    meter.load = total > 0 ? 100 * (after->busy - before->busy) / total : NAN;
    if (joules < 0)
        joules += after->range;
    meter.power = joules >= 0 ? joules / (after->seconds - before->seconds) : NAN;
}

static void read_meters(kn_usage *usage, const char *root)
{
    kn_lock(&meter.lock);
    if (meter.last.seconds == 0 || strcmp(meter.last.root, root) != 0) {
        meter.last = read_counters(root);
        nanosleep(&(struct timespec){.tv_nsec = (long)(INTERVAL * 1e9)}, NULL);
    }
    if (kn_clock_seconds() - meter.last.seconds >= 0.9 * INTERVAL) {
        reading current = read_counters(root);
        compare(&meter.last, &current);
        meter.last = current;
    }
    usage->load = meter.load;
    usage->power = meter.power;
    kn_unlock(&meter.lock);
}

/* --- the rest --------------------------------------------------------------------------------- */

/* "MemTotal:  24684092 kB". The page cache counts as free, because it can be reclaimed. */
static void read_memory(kn_usage *usage, const char *root)
{
    char path[KN_USAGE_PATH], line[128];
    int64_t kib, available = -1;
    FILE *file = kn_sys_open_lines(kn_usage_path(path, root, "/proc/meminfo"));
    if (!file)
        return;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "MemTotal: %" SCNd64, &kib) == 1)
            usage->memory_total = kib * 1024;
        else if (sscanf(line, "MemAvailable: %" SCNd64, &kib) == 1)
            available = kib * 1024;
    }
    fclose(file);
    if (usage->memory_total >= 0 && available >= 0)
        usage->memory_used = usage->memory_total - available;
}

typedef struct probe {
    const char *root;
    const char *folder, *kind, *degrees; /* of sensors, and the files of one: what it is, and its millidegrees */
    double value;                        /* NAN: nothing found yet */
    double sum;
    int count;
} probe;

static bool is_of_processor(const char *kind)
{
    static const char *const kinds[] = {"coretemp",    "k10temp",      "zenpower",   "cpu_thermal",
                                        "cpu-thermal", "x86_pkg_temp", "soc-thermal"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kind, kinds[i]) == 0)
            return true;
    return false;
}

static void visit_sensor(const char *name, void *user)
{
    probe *p = user;
    char path[KN_USAGE_PATH], kind[64];
    kn_usage_path(path, p->root, "%s/%s/%s", p->folder, name, p->kind);
    if (isnan(p->value) && kn_usage_read_line(path, kind, sizeof kind) && is_of_processor(kind))
        p->value = kn_usage_read_scaled(kn_usage_path(path, p->root, "%s/%s/%s", p->folder, name, p->degrees), 1e-3);
}

static void visit_cpu(const char *name, void *user)
{
    probe *p = user;
    char path[KN_USAGE_PATH];
    double mhz = kn_usage_read_scaled(
        kn_usage_path(path, p->root, "/sys/devices/system/cpu/%s/cpufreq/scaling_cur_freq", name), 1e-3);
    if (!isnan(mhz)) {
        p->sum += mhz;
        p->count++;
    }
}

/* The mean over the processors; virtual machines report it only in /proc/cpuinfo. */
static double read_clock(const char *root)
{
    probe p = {.root = root};
    char path[KN_USAGE_PATH], line[256];
    kn_visit_directory(kn_usage_path(path, root, "/sys/devices/system/cpu"), visit_cpu, &p);
    FILE *file = p.count == 0 ? kn_sys_open_lines(kn_usage_path(path, root, "/proc/cpuinfo")) : NULL;
    while (file && fgets(line, sizeof line, file)) {
        double mhz;
        if (sscanf(line, "cpu MHz : %lf", &mhz) == 1) {
            p.sum += mhz;
            p.count++;
        }
    }
    if (file)
        fclose(file);
    return p.count > 0 ? p.sum / p.count : NAN;
}

void kn_usage_from_host(kn_usage *usage, const char *root)
{
    char path[KN_USAGE_PATH];
    probe chips = {root, "/sys/class/hwmon", "name", "temp1_input", .value = NAN},
          zones = {root, "/sys/class/thermal", "type", "temp", .value = NAN};
    kn_visit_directory(kn_usage_path(path, root, "%s", chips.folder), visit_sensor, &chips);
    kn_visit_directory(kn_usage_path(path, root, "%s", zones.folder), visit_sensor, &zones);
    usage->temperature = isnan(chips.value) ? zones.value : chips.value;
    usage->clock = read_clock(root);
    read_memory(usage, root);
    read_meters(usage, root);
    usage->source = "proc";
}
