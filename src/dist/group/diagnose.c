/* dist/group/diagnose.c - the MPI that groups use, and the launcher on PATH. */
#include "dist/group/diagnose.h"

#include <string.h>
#include <sys/wait.h>

#include "base/child.h"
#include "base/error.h"
#include "base/system.h"
#include "dist/group/module.h"

#define TEXT 256
#define LIMIT_SECONDS 10

/* The first line that `NAME --version` prints; false if there is no such program. */
static bool launcher_version(const char *name, char text[TEXT])
{
    const char *const arguments[] = {name, "--version", NULL};
    int status;
    pid_t pid;
    text[0] = '\0';
    const int file = kn_sys_memory_file("koine launcher");
    if (file < 0)
        return false;
    bool found = kn_child_start(&pid, arguments, (const int[]){-1, file, file}) == 0;
    found = found && kn_child_wait(pid, &status, LIMIT_SECONDS, LIMIT_SECONDS, NULL);
    const ssize_t length = found ? kn_sys_read(file, text, TEXT - 1, 0) : 0;
    text[length > 0 ? length : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    kn_sys_close(file);
    return found;
}

static bool is_open_mpi(const char *text)
{
    static const char *const names[] = {"Open MPI", "OpenRTE", "PRRTE", "prte"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strstr(text, names[i]))
            return true;
    return false;
}

static void examine_launcher(kn_diagnosis *diagnosis, const char *mpi)
{
    char mpirun[TEXT], srun[TEXT];
    const char *package = is_open_mpi(mpi) ? "openmpi-bin" : "mpich";
    const bool has_mpirun = launcher_version("mpirun", mpirun), has_srun = launcher_version("srun", srun);
    if (has_mpirun && is_open_mpi(mpi) != is_open_mpi(mpirun))
        kn_diagnosis_add(diagnosis, KN_FINDING_NOTE,
                         kn_formatted("groups of processes run over %s, but mpirun is another MPI's (%s)", mpi, mpirun),
                         kn_formatted("start programs with the mpirun of the package %s (mpirun.%s)", package,
                                      is_open_mpi(mpi) ? "openmpi" : "mpich"));
    else if (has_mpirun || has_srun)
        kn_diagnosis_add(diagnosis, KN_FINDING_GOOD,
                         kn_formatted("groups of processes run over %s, started by %s%s%s", mpi,
                                      has_mpirun ? "mpirun" : "", has_mpirun && has_srun ? " or " : "",
                                      has_srun ? "srun" : ""),
                         NULL);
    else
        kn_diagnosis_add(diagnosis, KN_FINDING_NOTE,
                         kn_formatted("groups of processes run over %s, but its launcher, mpirun, is not on PATH", mpi),
                         kn_formatted("apt-get install %s", package));
}

void kn_diagnose_groups(kn_diagnosis *diagnosis)
{
    char mpi[TEXT], version[TEXT];
    KN_PRESERVE_ERROR;
    if (kn_module_describe("mpi", mpi, sizeof mpi) == KN_OK)
        examine_launcher(diagnosis, mpi);
    else if (launcher_version("mpirun", version))
        kn_diagnosis_add(diagnosis, KN_FINDING_NOTE,
                         kn_formatted("there is an MPI (%s), but %s", version, kn_error_message()),
                         kn_formatted("install libopenmpi-dev or libmpich-dev and build Koine again"));
    else
        kn_diagnosis_add(diagnosis, KN_FINDING_GOOD,
                         kn_formatted("there is no MPI: groups are of one process, or of threads"), NULL);
}
