/* common/side_by_side.c - which devices an example compares, and a clock to compare them with. */
#include "common/side_by_side.h"

#include <time.h>

int devices_to_compare(kn_device *devices[MAX_DEVICES], const char *name)
{
    if (name != NULL)
        return kn_device_open(&devices[0], name) == KN_OK ? 1 : 0;
    int count = 0;
    if (kn_device_open(&devices[count], "cpu") == KN_OK)
        count++;
    if (kn_gpu_count() > 0 && kn_device_open(&devices[count], "gpu") == KN_OK)
        count++;
    if (count > 0)
        kn_error_clear(); /* one of the two does not exist */
    return count;
}

double seconds_now(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
