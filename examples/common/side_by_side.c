/* common/side_by_side.c - which devices an example compares, and a clock to compare them with. */
#include "common/side_by_side.h"

#include <time.h>

int devices_to_compare(kn_device *devices[MAX_DEVICES], const char *name)
{
    const char *const names[] = {name != NULL ? name : "cpu", name == NULL && kn_gpu_count() > 0 ? "gpu" : NULL};
    int count = 0;
    for (int i = 0; i < 2 && names[i] != NULL; i++) {
        devices[count] = kn_device_open(names[i]);
        count += devices[count] != NULL;
    }
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
