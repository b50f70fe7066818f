/* dist/group/diagnose.h - what `koine doctor` finds out about groups. */
#pragma once

#include "watch/doctor/diagnose.h"

/* Is there an MPI, which, and does the launcher belong to it? */
void kn_diagnose_groups(kn_diagnosis *diagnosis);
