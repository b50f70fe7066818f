/* cli/smi.h - formats the readings of `koine smi`. */
#pragma once

#include <stdio.h>

#include "base/layout.h"
#include "cli/cli.h"

#define KN_SMI_MAX 64 /* devices */

/* One reading of one device. */
typedef struct kn_smi_row {
    const kn_device *device;
    kn_device_properties properties;
    kn_usage usage;
} kn_smi_row;

/* Appends the header line, the table of devices and the table of processes. */
void kn_smi_table(kn_text *out, const kn_smi_row *rows, int count, kn_page page);

/* Appends the reading as one JSON object, on one line if `compact`; unknown figures are null. False if out of
 * memory. */
bool kn_smi_json(kn_text *out, const kn_smi_row *rows, int count, bool compact);
