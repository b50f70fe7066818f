/* rt/graph/recording.c - see rt/graph/recording.h. */
#include "rt/graph/recording.h"

#include "rt/graph/variable.h"

void kn_command_free(kn_command *command)
{
    if (command->kernel)
        clReleaseKernel(command->kernel);
    if (command->transfer.from)
        clReleaseMemObject(command->transfer.from);
    if (command->transfer.to)
        clReleaseMemObject(command->transfer.to);
    kn_free(command->values);
    kn_free(command->operation);
    kn_free(command->kernel_name);
}

const char *kn_command_operation(const kn_command *command)
{
    if (command->is_gemm)
        return "gemm (CLBlast)";
    return command->operation ? command->operation : command->kind == KN_COMMAND_FILL ? "fill" : "copy";
}

void kn_recording_free(kn_recording *recording)
{
    if (!recording)
        return;
    for (int i = 0; i < recording->num_hooks; i++)
        if (recording->hooks[i].drop)
            recording->hooks[i].drop(recording->hooks[i].user);
    for (int i = 0; i < recording->num_commands; i++)
        kn_command_free(&recording->commands[i]);
    for (int i = 0; i < recording->num_outside; i++) {
        kn_buffer_unwatch(&recording->outside[i]->watcher);
        kn_free(recording->outside[i]);
    }
    for (int i = 0; i < recording->num_variables; i++)
        kn_variable_drop(recording->variables[i].memory);
    kn_free(recording->commands);
    kn_free(recording->variables);
    kn_free(recording->arguments);
    kn_free(recording->hooks);
    kn_free(recording->outside);
    kn_free(recording);
}

bool kn_recording_lost_memory(const kn_recording *recording)
{
    for (int i = 0; i < recording->num_outside; i++)
        if (atomic_load_explicit(&recording->outside[i]->gone, memory_order_relaxed))
            return true;
    return false;
}
