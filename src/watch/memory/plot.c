/* watch/memory/plot.c - memory use over time as a plot, and a snapshot as text. */
#include <koine/device.h>
#include <koine/memory.h>

#include "base/error.h"
#include "base/files.h"
#include "base/plot.h"
#include "base/text.h"
#include "rt/memory/snapshot.h"
#include "watch/memory/snapshot_read.h"

#define MAX_FILE ((size_t)1 << 30)
#define MAX_POINTS 4000 /* more than the plot's pixel columns */
#define MIB 1048576.0

/* --- the picture ------------------------------------------------------------------------------ */

/* Columns: time, number of the change, allocated, reserved. A long history is reduced to the peaks of equal
 * intervals. */
static void append_points(kn_text *script, const kn_snapshot_figures *f, double per_unit)
{
    size_t stretch = (f->num_points + MAX_POINTS - 1) / MAX_POINTS;
    kn_text_append(script, "$use << EOD\n");
    for (size_t i = 0; i < f->num_points; i += stretch) {
        kn_snapshot_point peak = f->points[i];
        for (size_t j = i; j < i + stretch && j < f->num_points; j++) {
            peak.allocated = f->points[j].allocated > peak.allocated ? f->points[j].allocated : peak.allocated;
            peak.reserved = f->points[j].reserved > peak.reserved ? f->points[j].reserved : peak.reserved;
        }
        kn_text_format(script, "%.6g %zu %.6g %.6g\n", peak.time_us / per_unit, i, peak.allocated / MIB,
                       peak.reserved / MIB);
    }
    kn_text_append(script, "EOD\n");
}

static void append_panel(kn_text *script, int column, const char *label, double last)
{
    kn_text_format(script,
                   "set xlabel '%s'\nset xrange [0:%.6g]\n"
                   "plot $use using %d:3 with fillsteps lc rgb '#3b6ea8' title 'allocated', "
                   "$use using %d:3 with steps lc rgb '#3b6ea8' lw 1 notitle, "
                   "$use using %d:4 with steps lc rgb '#d1662a' lw 2 title 'reserved'\n",
                   label, last > 0 ? last : 1, column, column, column);
}

/* Two plots: over time, where a long pause compresses the rest, and over the number of the change, where it does
 * not. */
static void write_script(kn_text *script, const void *subject)
{
    const kn_snapshot_figures *f = subject;
    double end_us = f->points[f->num_points - 1].time_us, per_unit = end_us > 10e6 ? 1e6 : 1e3;
    append_points(script, f, per_unit);
    kn_text_append(script, "set ylabel 'MiB' textcolor rgb '#333333'\n"
                           "set yrange [0:*]\n"
                           "set style fill solid 0.35 noborder\n"
                           "set multiplot layout 2, 1\n"
                           "set key outside top right horizontal\n");
    append_panel(script, 1, per_unit > 1e3 ? "seconds" : "milliseconds", end_us / per_unit);
    kn_text_append(script, "set key off\n");
    append_panel(script, 2, "allocations and frees, one by one", (double)(f->num_points - 1));
    kn_text_append(script, "unset multiplot\n");
}

static kn_status draw(const cJSON *root, const char *what, const char *path)
{
    kn_snapshot_figures figures;
    kn_status status = kn_snapshot_read(&figures, root, what);
    if (status == KN_OK && figures.num_points == 0)
        status =
            kn_fail(KN_ERR_STATE, "plot: %s holds no history; kn_memory_record_history starts to record one", what);
    if (status == KN_OK) {
        const kn_plot plot = {.width = 900, .height = 560, .write = write_script, .subject = &figures};
        status = kn_plot_save(&plot, path);
    }
    kn_free(figures.points);
    return status;
}

kn_status kn_memory_save_plot(kn_device *device, const char *path)
{
    if (!device || !path)
        return kn_fail_argument_null("kn_memory_save_plot", device ? "path" : "device");
    KN_TRY(kn_plot_check_path(path));
    cJSON *root = kn_memory_snapshot_json(device, NULL);
    if (!root)
        return KN_ERR_MEMORY;
    kn_status status = draw(root, kn_device_string(device), path);
    cJSON_Delete(root);
    return status;
}

/* --- snapshots in files ----------------------------------------------------------------------- */

static kn_status parse(cJSON **root, const char *path)
{
    char *text;
    size_t size;
    KN_TRY(kn_file_read_all(&text, &size, path, MAX_FILE));
    *root = cJSON_ParseWithLength(text, size);
    kn_free(text);
    return *root ? KN_OK : kn_fail(KN_ERR_FORMAT, "%s is no memory snapshot: it is not JSON", path);
}

kn_status kn_memory_snapshot_save_plot(const char *snapshot_path, const char *path)
{
    if (!snapshot_path || !path)
        return kn_fail_argument_null("kn_memory_snapshot_save_plot", snapshot_path ? "path" : "snapshot_path");
    KN_TRY(kn_plot_check_path(path));
    cJSON *root;
    KN_TRY(parse(&root, snapshot_path));
    kn_status status = draw(root, snapshot_path, path);
    cJSON_Delete(root);
    return status;
}

static void bytes_line(kn_text *text, const char *label, double bytes)
{
    char number[32];
    uint64_t whole = bytes < 1.8e19 ? (uint64_t)bytes : UINT64_MAX; /* a file may claim anything */
    kn_text_format(text, "%-22s %12s\n", label, kn_format_bytes(number, sizeof number, whole));
}

static char *describe(const kn_snapshot_figures *f)
{
    kn_text text = {0};
    kn_text_format(&text, "%-22s %12d\n%-22s %12d\n", "segments", f->segments, "blocks in use", f->blocks);
    bytes_line(&text, "reserved", f->reserved);
    bytes_line(&text, "allocated", f->allocated);
    bytes_line(&text, "requested", f->requested);
    bytes_line(&text, "free", f->free_bytes);
    bytes_line(&text, "largest free block", f->largest_free);
    if (f->free_bytes > 0)
        kn_text_format(&text, "%-22s %12.3f   (1 - largest free block / free)\n", "fragmentation",
                       1 - f->largest_free / f->free_bytes);
    if (f->num_points > 0) {
        kn_text_format(&text, "%-22s %12zu   changes over %.3f s\n", "history", f->num_points,
                       f->points[f->num_points - 1].time_us * 1e-6);
        bytes_line(&text, "peak allocated", f->peak_allocated);
        bytes_line(&text, "peak reserved", f->peak_reserved);
    }
    return kn_text_finish(&text);
}

char *kn_memory_snapshot_summary(const char *snapshot_path)
{
    cJSON *root = NULL;
    kn_snapshot_figures figures = {0};
    char *text = NULL;
    if (!snapshot_path)
        kn_fail_argument_null("kn_memory_snapshot_summary", "snapshot_path");
    else if (parse(&root, snapshot_path) == KN_OK && kn_snapshot_read(&figures, root, snapshot_path) == KN_OK)
        text = describe(&figures);
    kn_free(figures.points);
    cJSON_Delete(root);
    return text;
}
