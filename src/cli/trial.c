/* cli/trial.c - `koine --trial NAME DEVICE`: a trial that the library runs in a process of its own
 * (ops/dispatch/trial.h). */
#include <string.h>

#include "cli/cli.h"
#include "ops/gemm/instructions.h"

int kn_run_trial(int argc, char **argv)
{
    if (argc != 2)
        return KN_EXIT_USAGE;
    int instruction = 0;
    while (instruction < KN_INSTRUCTIONS && strcmp(argv[0], kn_instruction_name(instruction)) != 0)
        instruction++;
    if (instruction == KN_INSTRUCTIONS)
        return KN_EXIT_USAGE;
    kn_device *device = kn_device_open(argv[1]);
    if (!device)
        return kn_report_error();
    const kn_verdict verdict = kn_instruction_try(device, instruction);
    return verdict == KN_WORKS ? KN_EXIT_WORKS : verdict == KN_FAILS ? KN_EXIT_FAILS : KN_EXIT_UNDECIDED;
}
