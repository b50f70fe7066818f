/* cli/trial.c - `koine --trial NAME DEVICE`: a trial that the library runs in a process of its own
 * (ops/dispatch/trial.h). */
#include <string.h>

#include "cli/cli.h"
#include "ops/gemm/blocked.h"

int kn_run_trial(int argc, char **argv)
{
    if (argc != 2)
        return KN_EXIT_USAGE;
    kn_device *device = kn_device_open(argv[1]);
    if (!device)
        return kn_report_error();
    const bool f16 = strcmp(argv[0], "tensor-cores-f16") == 0;
    if (!f16 && strcmp(argv[0], "tensor-cores-tf32") != 0)
        return KN_EXIT_USAGE;
    const kn_verdict verdict = kn_tensor_cores_try(device, f16);
    return verdict == KN_WORKS ? KN_EXIT_WORKS : verdict == KN_FAILS ? KN_EXIT_FAILS : KN_EXIT_UNDECIDED;
}
