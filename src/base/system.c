/* base/system.c - see base/system.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create, sched_getaffinity, secure_getenv */
#endif
#include "base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/threads.h"

#define LOWEST_DESCRIPTOR 3
#define MAX_BYTES ((size_t)1 << 30) /* per call: Linux transfers at most 2 GiB */

/* --- fault injection ---------------------------------------------------------------------------------------------- */

static atomic_long fail_after; /* counts down to the call that fails; 0: never */
static atomic_int fail_error = EIO;
static atomic_bool fail_sticky;

void kn_fail_io_after(long n, int error, bool sticky)
{
    atomic_store(&fail_error, error);
    atomic_store(&fail_sticky, sticky);
    atomic_store(&fail_after, n);
}

long kn_fail_io_left(void) { return atomic_load(&fail_after); }

static void read_environment(void)
{
    const char *wanted = kn_trusted_environment("KOINE_FAIL_IO");
    char *end;
    if (!wanted)
        return;
    const long n = strtol(wanted, &end, 10);
    const long error = *end == ':' ? strtol(end + 1, NULL, 10) : EIO;
    kn_fail_io_after(n, (int)error, false);
}

/* True, with errno set, if this call must fail. */
static bool must_fail(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_environment);
    if (atomic_load_explicit(&fail_after, memory_order_relaxed) <= 0 || atomic_fetch_sub(&fail_after, 1) != 1)
        return false;
    if (atomic_load(&fail_sticky))
        atomic_store(&fail_after, 1);
    errno = atomic_load(&fail_error);
    return true;
}

/* --- descriptors -------------------------------------------------------------------------------------------------- */

/* Occupies the standard streams' descriptors, where they are free, while a file is opened: read-only, so that nothing
 * can be printed there. Returns how many. */
static int hold_standard_streams(int held[LOWEST_DESCRIPTOR])
{
    int count = 0;
    bool open_already = true;
    for (int i = 0; i < LOWEST_DESCRIPTOR; i++)
        open_already = open_already && fcntl(i, F_GETFD) >= 0;
    while (!open_already && count < LOWEST_DESCRIPTOR) {
        const int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (descriptor >= LOWEST_DESCRIPTOR)
            close(descriptor);
        if (descriptor < 0 || descriptor >= LOWEST_DESCRIPTOR)
            break;
        held[count++] = descriptor;
    }
    return count;
}

/* The new descriptor, after releasing the held ones. It is moved up if there was no /dev/null to hold them with. */
static int released(const int *held, int count, int descriptor)
{
    int error = errno;
    for (int i = 0; i < count; i++)
        close(held[i]);
    if (descriptor >= 0 && descriptor < LOWEST_DESCRIPTOR) {
        const int low = descriptor;
        descriptor = fcntl(low, F_DUPFD_CLOEXEC, LOWEST_DESCRIPTOR);
        error = errno;
        close(low);
    }
    errno = error;
    return descriptor;
}

static int open_once(const char *path, int flags, mode_t mode)
{
    int descriptor;
    do {
        descriptor = open(path, flags | O_CLOEXEC | O_NOCTTY, mode);
    } while (descriptor < 0 && errno == EINTR);
    return descriptor;
}

int kn_sys_open(const char *path, int flags, mode_t mode)
{
    int held[LOWEST_DESCRIPTOR];
    if (must_fail())
        return -1;
    const int count = hold_standard_streams(held);
    return released(held, count, open_once(path, flags, mode));
}

int kn_sys_memory_file(const char *name)
{
    int held[LOWEST_DESCRIPTOR];
    if (must_fail())
        return -1;
    const int count = hold_standard_streams(held);
    return released(held, count, memfd_create(name, MFD_CLOEXEC));
}

/* Both ends of what `make` makes, or neither. */
static int make_ends(int ends[2], int (*make)(int made[2]))
{
    int held[LOWEST_DESCRIPTOR], made[2];
    if (must_fail())
        return -1;
    const int count = hold_standard_streams(held), result = make(made);
    ends[0] = released(held, count, result == 0 ? made[0] : -1);
    ends[1] = released(NULL, 0, result == 0 ? made[1] : -1);
    if (ends[0] >= 0 && ends[1] >= 0)
        return 0;
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
    return -1;
}

static int make_pipe(int made[2]) { return pipe2(made, O_CLOEXEC); }
static int make_sockets(int made[2]) { return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, made); }

int kn_sys_pipe(int ends[2]) { return make_ends(ends, make_pipe); }
int kn_sys_socket_pair(int ends[2]) { return make_ends(ends, make_sockets); }

int kn_sys_processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

/* Not retried after a signal: the descriptor is already closed by then and may belong to another file. */
int kn_sys_close(int descriptor)
{
    const bool fails = must_fail();
    const int error = errno, closed = close(descriptor);
    if (fails)
        errno = error;
    return fails || (closed != 0 && errno != EINTR) ? -1 : 0;
}

DIR *kn_sys_opendir(const char *path)
{
    const int descriptor = kn_sys_open(path, O_RDONLY | O_DIRECTORY, 0);
    DIR *list = descriptor >= 0 ? fdopendir(descriptor) : NULL;
    if (descriptor >= 0 && !list)
        close(descriptor);
    return list;
}

FILE *kn_sys_open_lines(const char *path)
{
    struct stat info;
    const int descriptor = kn_sys_open(path, O_RDONLY | O_NONBLOCK, 0); /* else a pipe would wait for a writer */
    const bool regular = descriptor >= 0 && kn_sys_fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode);
    FILE *lines = regular ? fdopen(descriptor, "r") : NULL;
    if (descriptor >= 0 && !lines)
        close(descriptor);
    return lines;
}

/* --- content ------------------------------------------------------------------------------------------------------ */

ssize_t kn_sys_read(int descriptor, void *data, size_t bytes, uint64_t offset)
{
    size_t done = 0;
    if (must_fail())
        return -1;
    while (done < bytes) {
        const size_t wanted = bytes - done < MAX_BYTES ? bytes - done : MAX_BYTES;
        const ssize_t got = pread(descriptor, (char *)data + done, wanted, (off_t)(offset + done));
        if (got == 0)
            break;
        if (got < 0 && errno != EINTR)
            return -1;
        done += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)done;
}

int kn_sys_write(int descriptor, const void *data, size_t bytes)
{
    const bool fails = must_fail();
    const int error = errno;
    const size_t all = fails ? bytes / 2 : bytes; /* as a full disk would */
    for (size_t done = 0; done < all;) {
        const size_t wanted = all - done < MAX_BYTES ? all - done : MAX_BYTES;
        const ssize_t written = write(descriptor, (const char *)data + done, wanted);
        if (written < 0 && errno != EINTR)
            return -1;
        done += written > 0 ? (size_t)written : 0;
    }
    errno = fails ? error : errno;
    return fails ? -1 : 0;
}

int kn_sys_sync(int descriptor)
{
    int result;
    if (must_fail())
        return -1;
    do {
        result = fsync(descriptor);
    } while (result != 0 && errno == EINTR);
    return result;
}

int kn_sys_lock(int descriptor, bool wait)
{
    int result;
    if (must_fail())
        return -1;
    do {
        result = flock(descriptor, wait ? LOCK_EX : LOCK_EX | LOCK_NB);
    } while (result != 0 && errno == EINTR);
    return result;
}

void kn_sys_unlock(int descriptor) { flock(descriptor, LOCK_UN); }

/* --- names -------------------------------------------------------------------------------------------------------- */

int kn_sys_fstat(int descriptor, struct stat *info) { return must_fail() ? -1 : fstat(descriptor, info); }
int kn_sys_stat(const char *path, struct stat *info) { return must_fail() ? -1 : stat(path, info); }
int kn_sys_lstat(const char *path, struct stat *info) { return must_fail() ? -1 : lstat(path, info); }
int kn_sys_rename(const char *from, const char *to) { return must_fail() ? -1 : rename(from, to); }
int kn_sys_unlink(const char *path) { return must_fail() ? -1 : unlink(path); }
int kn_sys_mkdir(const char *path, mode_t mode) { return must_fail() ? -1 : mkdir(path, mode); }

/* --- randomness and the environment ------------------------------------------------------------------------------- */

bool kn_sys_random(void *data, size_t bytes) { return getrandom(data, bytes, 0) == (ssize_t)bytes; }

const char *kn_trusted_environment(const char *name) { return secure_getenv(name); }
