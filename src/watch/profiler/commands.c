/* watch/profiler/commands.c - the recorded commands one by one, for other tools. */
#include "base/error.h"
#include "base/memory.h"
#include "watch/profiler/analysis.h"

static kn_profiler_command describe(const kn_profile *profile, const kn_command_record *record,
                                    kn_clock_offsets *offsets)
{
    const kn_track *track = &profile->tracks[record->track];
    kn_profiler_command command = {.kind = record->kind == KN_COMMAND_KERNEL ? KN_PROFILER_KERNEL
                                           : record->kind == KN_COMMAND_FILL ? KN_PROFILER_FILL
                                                                             : KN_PROFILER_COPY,
                                   .name = kn_command_name(record),
                                   .operation = record->operation,
                                   .device = track->device,
                                   .stream = track->number,
                                   .enqueued = record->enqueued,
                                   .bytes = record->bytes,
                                   .correlation = record->correlation};
    for (int d = 0; d < 3; d++) {
        command.global[d] = record->global[d];
        command.local[d] = record->local[d];
    }
    if (record->is_timed) {
        const int64_t offset = kn_clock_offset(offsets, profile, record);
        command.start = (int64_t)record->start + offset;
        command.end = (int64_t)record->end + offset;
    }
    return command;
}

/* The lock is held. */
static kn_profiler_command *describe_all(const kn_profile *profile, int64_t *count)
{
    kn_clock_offsets offsets = {0};
    kn_profiler_command *commands = kn_calloc(profile->num_commands + 1, sizeof *commands);
    if (!commands)
        return NULL;
    for (size_t i = 0; i < profile->num_commands; i++)
        commands[i] = describe(profile, &profile->commands[i], &offsets);
    *count = (int64_t)profile->num_commands;
    return commands;
}

kn_profiler_command *kn_profiler_commands(int64_t *count)
{
    const kn_profile *profile = &kn_the_profile;
    if (!count)
        return kn_fail_argument_null("kn_profiler_commands", "count"), NULL;
    kn_lock(&kn_profile_lock);
    kn_profiler_command *commands = NULL;
    if (kn_profile_check_results(profile, "kn_profiler_commands") == KN_OK)
        commands = describe_all(profile, count);
    kn_unlock(&kn_profile_lock);
    return commands;
}
