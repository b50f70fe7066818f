/* rt/compile/helper.c - see rt/compile/helper.h. Each has a thread here, which hands it jobs. */
#include "rt/compile/helper.h"

#include <fcntl.h>
#include <signal.h>

#include "base/child.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/own_files.h"
#include "base/system.h"
#include "rt/compile/wire.h"

#define IDLE_SECONDS 10.0
#define START_SECONDS 10.0 /* of the process that starts the helper and ends */

typedef struct helper {
    kn_device *device;
    kn_compiles *compiles;
} helper;

/* --- the process -------------------------------------------------------------------------------------------------- */

/* Its standard input is the socket. Standard output and error are not ours: what a reader of them waits for is the end
 * of this process. */
static bool start(const kn_device *device, int socket)
{
    char *program = kn_own_program();
    const char *const arguments[] = {program, "--compile", device->label, NULL};
    const int nowhere = kn_sys_open("/dev/null", O_RDWR | O_CLOEXEC, 0);
    pid_t pid;
    int status;
    const bool started = program && nowhere >= 0 &&
                         kn_child_start(&pid, arguments, (const int[]){socket, nowhere, nowhere}) == 0 &&
                         kn_child_wait(pid, &status, START_SECONDS, 0, NULL);
    if (nowhere >= 0)
        kn_sys_close(nowhere);
    kn_free(program);
    return started;
}

/* The socket to a helper that is ready; -1: there is none. */
static int connect_new(const kn_device *device)
{
    const kn_hash expected = kn_wire_identity(device);
    kn_hash identity;
    int ends[2];
    if (kn_sys_socket_pair(ends) != 0)
        return -1;
    const bool started = start(device, ends[1]);
    kn_sys_close(ends[1]);
    if (started && kn_wire_receive(ends[0], &identity, sizeof identity) && identity.high == expected.high &&
        identity.low == expected.low)
        return ends[0];
    kn_sys_close(ends[0]);
    return -1;
}

static bool hand_over(int socket, const kn_compile_job *job)
{
    size_t size;
    char through;
    const char *request = kn_job_request(job, &size);
    return kn_wire_send(socket, &size, sizeof size) && kn_wire_send(socket, request, size) &&
           kn_wire_receive(socket, &through, sizeof through);
}

/* --- its thread --------------------------------------------------------------------------------------------------- */

/* The helper's number; 0: it does not work. */
static int note_start(const helper *self, bool works)
{
    kn_compiles *compiles = self->compiles;
    kn_lock(&compiles->lock);
    const int number = works ? ++compiles->numbered : 0;
    compiles->starting--;
    if (!works)
        compiles->most_helpers = 0; /* the next one would not start either */
    kn_unlock(&compiles->lock);
    kn_log_message(KN_LOG_DEBUG,
                   works ? "%s: another process compiles kernels, too"
                         : "%s: no process that compiles kernels can be started (KOINE_PROGRAM)",
                   self->device->label);
    return number;
}

static void *attend(void *argument)
{
    helper *self = argument;
    kn_compiles *compiles = self->compiles;
    kn_compile_job *job;
    const int socket = connect_new(self->device);
    const int number = note_start(self, socket >= 0);
    bool works = number > 0;
    while (works && (job = kn_jobs_take(compiles, number, IDLE_SECONDS))) {
        works = hand_over(socket, job);
        kn_jobs_finish(compiles, job);
    }
    kn_lock(&compiles->lock);
    compiles->helpers--;
    kn_unlock(&compiles->lock);
    if (socket >= 0)
        kn_sys_close(socket);
    kn_error_clear();
    kn_free(self);
    return NULL;
}

/* Signals are for the host program's threads. */
static bool start_thread(helper *self)
{
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const bool started = pthread_create(&thread, NULL, attend, self) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        pthread_detach(thread);
    return started;
}

/* Unless there are as many as there may be. */
static void start_helper(kn_device *device, kn_compiles *compiles)
{
    KN_PRESERVE_ERROR;
    kn_lock(&compiles->lock);
    const bool wanted = compiles->helpers < compiles->most_helpers;
    compiles->helpers += wanted;
    compiles->starting += wanted;
    kn_unlock(&compiles->lock);
    if (!wanted)
        return;
    helper *self = kn_calloc(1, sizeof *self);
    if (self)
        *self = (helper){device, compiles};
    if (self && start_thread(self))
        return;
    kn_free(self);
    kn_lock(&compiles->lock);
    compiles->helpers--;
    compiles->starting--;
    kn_unlock(&compiles->lock);
}

/* One job is this process's. */
void kn_helper_offer(kn_device *device, kn_compiles *compiles)
{
    kn_lock(&compiles->lock);
    const bool has_work = compiles->waiting - 1 > compiles->idle + compiles->starting;
    kn_unlock(&compiles->lock);
    if (has_work)
        start_helper(device, compiles);
}
