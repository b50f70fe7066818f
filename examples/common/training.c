/* common/training.c - see training.h. */
#include "common/training.h"

#include <stdio.h>
#include <string.h>

kn_device *training_device(const char *name)
{
    kn_device *device = kn_device_open(name);
    if (device == NULL || kn_device_set_current(device) != KN_OK)
        return NULL;
    printf("device: %s (%s)\n", kn_device_string(device), kn_device_name(device));
    return device;
}

kn_dtype training_precision(const char *choice)
{
    return strcmp(choice, "f16") == 0 ? KN_F16 : strcmp(choice, "bf16") == 0 ? KN_BF16 : KN_F32;
}

int training_status(const char *program, kn_status status, const kn_trainer *trainer)
{
    if (status == KN_OK)
        return 0;
    fprintf(stderr, "%s: %s\n", program, kn_error_message());
    if (status == KN_ERR_INTERRUPTED)
        fprintf(stderr, "%s: --resume continues after the last finished epoch\n", program);
    const int signal_number = kn_trainer_signal(trainer);
    return signal_number > 0 ? 128 + signal_number : 1;
}
