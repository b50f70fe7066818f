/* dist/mpi/monitor.h - which ranks are alive: a thread per process tells the others, by messages of its own, that this
 * process runs. MPI's collectives do not return when a rank is gone; those who wait for one ask here. */
#pragma once

#include "dist/mpi/mpi.h"

/* Starts the thread for all processes of `comm`; collective. `lost_after`: seconds of silence after which a rank counts
 * as lost. Needs MPI_THREAD_MULTIPLE; without it nothing is watched. */
kn_status kn_mpi_monitor_start(MPI_Comm comm, double lost_after);

/* Returns when all ranks have called it, or one is lost; false: one is. */
bool kn_mpi_monitor_stop(void);

/* The program's next call begins: tells the others how far this rank is. */
void kn_mpi_monitor_count_call(void);

/* KN_ERR_DEVICE with the name of a rank of `self` that is lost; after the time-out, of one that is behind. */
kn_status kn_mpi_monitor_check(kn_transport *self, double waited);

/* The same after an error that a loss may explain: waits until one is known. KN_OK: none is lost. */
kn_status kn_mpi_monitor_await_loss(kn_transport *self);
