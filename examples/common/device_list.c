/* common/device_list.c - the devices that an option names. */
#include "common/device_list.h"

#include <stdio.h>
#include <string.h>

kn_status device_list(kn_device *devices[LONGEST_LIST], int *count, const char *list)
{
    *count = 0;
    if (strcmp(list, "all") == 0) {
        int found = kn_try_all_gpus(devices, LONGEST_LIST);
        *count = found < LONGEST_LIST ? found : LONGEST_LIST;
        return found > 0 ? KN_OK : kn_error_status();
    }
    for (const char *rest = list; rest != NULL;) {
        size_t length = strcspn(rest, ",");
        char name[128];
        if (*count == LONGEST_LIST || length >= sizeof name)
            return kn_error_set(KN_ERR_ARGUMENT, "\"%s\" names too many devices, or a name is too long", list);
        snprintf(name, sizeof name, "%.*s", (int)length, rest);
        devices[*count] = kn_device_open(name);
        if (devices[*count] == NULL)
            return kn_error_status();
        (*count)++;
        rest = rest[length] == ',' ? rest + length + 1 : NULL;
    }
    return KN_OK;
}
