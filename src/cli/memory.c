/* cli/memory.c - `koine memory`: summarises a memory snapshot, and plots it. */
#include <stdio.h>

#include "cli/cli.h"

static int run(int argc, char **argv)
{
    const char *snapshot = NULL, *plot = NULL;
    const kn_option options[] = {{"--plot", NULL, &plot}};
    int status = kn_parse_options(&kn_command_memory, argc, argv, options, 1, &snapshot, 1);
    if (status >= 0)
        return status;
    if (!snapshot)
        return kn_usage_error(kn_command_memory.usage, "koine memory: no snapshot file is given");
    char *summary = kn_memory_snapshot_summary(snapshot);
    if (!summary)
        return kn_report_error();
    fputs(summary, stdout);
    kn_free(summary);
    if (plot && kn_memory_snapshot_save_plot(snapshot, plot) != KN_OK)
        return kn_report_error();
    return KN_EXIT_DONE;
}

const kn_command kn_command_memory = {
    .name = "memory",
    .summary = "summarise a memory snapshot; plot memory use over time",
    .usage = "usage: koine memory SNAPSHOT.json [--plot FILE.svg]\n\n"
             "SNAPSHOT.json was written by kn_memory_snapshot (or is PyTorch's snapshot as JSON).\n"
             "  --plot FILE   plot its history to FILE, .svg or .png (needs gnuplot)\n",
    .run = run,
};
