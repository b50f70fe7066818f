/* ops/dispatch/trial.c - see ops/dispatch/trial.h. */
#include "ops/dispatch/trial.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/own_files.h"
#include "rt/tuning/tuning.h"

double kn_trial_seconds = 120; /* a driver may compile for long */

static const char *const names[] = {[KN_WORKS] = "works", [KN_FAILS] = "fails"};

/* --- stored ------------------------------------------------------------------------------------------------------- */

static kn_verdict find_stored(kn_device *device, const char *question)
{
    kn_tuning_result known;
    kn_verdict verdict = KN_UNDECIDED;
    if (!kn_tuning_find(&known, device, question))
        return verdict;
    for (int i = KN_WORKS; known.choice && i <= KN_FAILS; i++)
        if (strcmp(known.choice, names[i]) == 0)
            verdict = (kn_verdict)i;
    kn_tuning_free(&known);
    return verdict;
}

/* If it cannot be stored, the next process tries again. */
static void store(kn_device *device, const char *question, kn_verdict verdict, double seconds)
{
    kn_tuning_result made = {.question = kn_strdup(question), .complete = true};
    if (made.question && kn_tuning_add(&made, names[verdict], seconds, 1) == KN_OK)
        kn_tuning_store(device, &made);
    kn_tuning_free(&made);
}

/* --- the process -------------------------------------------------------------------------------------------------- */

static kn_verdict verdict_of(int status, const char *name, const char *device)
{
    if (status != -1 && WIFSIGNALED(status)) {
        kn_log_message(KN_LOG_WARNING, "the trial of %s on %s ended with signal %d: it is not used", name, device,
                       WTERMSIG(status));
        return KN_FAILS;
    }
    const int code = status != -1 && WIFEXITED(status) ? WEXITSTATUS(status) : KN_EXIT_UNDECIDED;
    return code == KN_EXIT_WORKS ? KN_WORKS : code == KN_EXIT_FAILS ? KN_FAILS : KN_UNDECIDED;
}

static kn_verdict run(const char *program, const char *name, const char *device)
{
    const char *const arguments[] = {program, "--trial", name, device, NULL};
    const int kept[3] = {-1, -1, -1};
    kn_verdict verdict = KN_UNDECIDED;
    pid_t pid;
    int status;
    if (kn_child_start(&pid, arguments, kept) == 0) {
        if (kn_child_wait(pid, &status, kn_trial_seconds, 0, NULL)) {
            verdict = verdict_of(status, name, device);
        } else {
            kn_log_message(KN_LOG_WARNING, "the trial of %s on %s did not end in %g s: it is not used", name, device,
                           kn_trial_seconds);
            verdict = KN_FAILS;
        }
    }
    return verdict;
}

kn_verdict kn_trial_elsewhere(kn_device *device, const char *name)
{
    KN_PRESERVE_ERROR;
    char question[80];
    snprintf(question, sizeof question, "trial %s", name);
    kn_verdict verdict = find_stored(device, question);
    char *program = verdict == KN_UNDECIDED ? kn_own_program() : NULL;
    if (!program)
        return verdict;
    const double begun = kn_clock_seconds();
    verdict = run(program, name, kn_device_string(device));
    kn_free(program);
    if (verdict != KN_UNDECIDED)
        store(device, question, verdict, fmax(kn_clock_seconds() - begun, 1e-3));
    return verdict;
}
