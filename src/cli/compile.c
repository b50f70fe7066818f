/* cli/compile.c - `koine --compile DEVICE`: a process that compiles kernels for the one that started it, to which its
 * standard input is connected (rt/compile/helper.h). */
#define _GNU_SOURCE /* close_range */
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "rt/compile/serve.h"

enum { SOCKET = 0, FIRST_OTHER = 3 };

/* The process that was started ends at once, so that its parent has no child left. Other descriptors that it inherited
 * would keep files and connections of that process open. */
static void detach(void)
{
    if (fork() > 0)
        _exit(KN_EXIT_DONE);
    close_range(FIRST_OTHER, ~0U, 0);
}

int kn_run_compile(int argc, char **argv)
{
    if (argc != 1)
        return KN_EXIT_USAGE;
    detach();
    setenv("KOINE_COMPILE_JOBS", "1", 1);
    kn_device *device = kn_device_open(argv[0]);
    if (!device)
        return KN_EXIT_FAILED;
    kn_compile_serve(device, SOCKET);
    _exit(KN_EXIT_DONE); /* no one waits for the driver's threads */
}
