/* common/training.h - what the programs that use kn_trainer share. */
#pragma once

#include <koine/koine.h>

/* --- ranks: the processes that mpirun, srun, ... have started ----------------------------------------------------- */

/* What --help says of them. */
#define TRAINING_RANKS                                                                                                 \
    "Started by mpirun, srun or the like, the processes train one network together:\n"                                 \
    "each takes its part of the data, and a GPU of its own unless --device names one.\n"                               \
    "--batch-size is that of each process, so a step learns from as many batches as\n"                                 \
    "there are processes; --lr is used as it is given. Usual is to multiply it by\n"                                   \
    "their number, and to let it rise during the first epochs. The first process\n"                                    \
    "writes the results.\n"

/* The group of all of them; of this one alone without a launcher. The stdout of all but the first is closed. NULL with
 * an error. */
kn_group *training_ranks(void);

/* With several ranks kn_nn_distributed, after which each rank's random numbers, as for dropout, are its own. Takes
 * `net`; NULL with an error. */
kn_module *training_module(kn_module *net, kn_group *group, uint64_t seed);

/* A rank's batches per epoch of a loader that the trainer divides. */
int64_t training_batches(const kn_loader *loader, int64_t batch_size, bool drop_last, const kn_group *group);

/* At the end of main. A rank that failed, alone perhaps, does not free the group, which has the launcher end the
 * others. `together`: all ranks end alike, as after anything that a trainer reports. */
void training_leave(kn_group *group, bool together);

/* For a program that trains in one process. False, after saying so, if a launcher has started several. */
bool training_is_alone(const char *program);

/* --- options and status ------------------------------------------------------------------------------------------- */

/* Opens the device that an option names, makes it the current one and prints its name. With several ranks, and "auto"
 * or "gpu", each of a machine has its own GPU, as far as there are enough. `group` may be NULL. NULL with an error. */
kn_device *training_device(const char *name, const kn_group *group);

#define PRECISIONS "f32|f16|bf16" /* the choices of --precision */
kn_dtype training_precision(const char *choice);

/* The exit status of main: 0, 1 with the error on stderr, or 128 plus the number of the signal that ended the fit.
 * `trainer` may be NULL. What all ranks report, only the first prints. */
int training_status(const char *program, kn_status status, const kn_trainer *trainer);
