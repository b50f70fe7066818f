/* rt/find/select.c - selecting devices: by index, by string, the best one. */
#include <stdlib.h>

#include "base/error.h"
#include "base/text.h"
#include "rt/device/table.h"
#include "rt/find/find.h"
#include "rt/find/match.h"
#include "rt/stream/open.h"

kn_status kn_fail_no_device(void)
{
    if (kn_devices_hidden() > 0)
        return kn_fail(KN_ERR_DEVICE,
                       "no OpenCL device is visible: KOINE_VISIBLE_DEVICES is `%s` and hides %s; unset it, or use "
                       "names that `koine devices` shows without it",
                       getenv("KOINE_VISIBLE_DEVICES"), kn_devices_hidden() > 1 ? "all there are" : "the only one");
    return kn_fail(KN_ERR_DEVICE, "no OpenCL device: install a driver, for a CPU `apt-get install pocl-opencl-icd`, "
                                  "for a GPU its vendor's OpenCL package; "
                                  "run `koine doctor` for details");
}

kn_status kn_init(void)
{
    KN_TRY(kn_devices_find());
    return kn_device_slots() > 1 ? KN_OK : kn_fail_no_device();
}

bool kn_is_initialized(void) { return kn_devices_are_found(); }

bool kn_is_available(void)
{
    KN_PRESERVE_ERROR;
    return kn_device_count() > 0;
}

int kn_device_count(void) { return kn_devices_find() == KN_OK ? kn_device_slots() - 1 : 0; }

int kn_gpu_count(void)
{
    int count = 0;
    for (int i = 0; i < kn_device_count(); i++)
        count += kn_device_slot_at(i + 1)->properties.type == KN_DEVICE_GPU;
    return count;
}

kn_device *kn_device_at(int index)
{
    int count = kn_device_count();
    if (index >= 0 && index < count)
        return kn_device_slot_at(index + 1);
    kn_fail(KN_ERR_DEVICE, "device %d does not exist: there are %d devices, counted from 0", index, count);
    return NULL;
}

/* --- by a string ------------------------------------------------------------------------------ */

static kn_device *best_device(void)
{
    kn_device *device = kn_match_type(KN_DEVICE_GPU, 0);
    if (!device)
        device = kn_match_type(KN_DEVICE_CPU, 0);
    return device ? device : kn_match_type(KN_DEVICE_ACCELERATOR, 0);
}

static kn_status fail_unknown(const char *name)
{
    kn_text list = {0};
    for (int slot = 1; slot < kn_device_slots(); slot++) {
        const kn_device *device = kn_device_slot_at(slot);
        kn_text_format(&list, "%s%s = %d:%d (%s)", slot > 1 ? ", " : "", device->label,
                       device->properties.platform_index, device->properties.device_index, device->properties.name);
    }
    kn_status status = kn_fail(KN_ERR_DEVICE, "no device matches `%s`; there is: %s", name, list.data ? list.data : "");
    kn_text_free(&list);
    return status;
}

kn_status kn_device_find(kn_device **device, const char *name)
{
    KN_TRY(kn_devices_find());
    const char *wanted = name ? name : "auto", *environment = getenv("KOINE_DEVICE");
    if (kn_text_equals_nocase(wanted, "auto") && environment && *environment)
        wanted = environment;
    bool automatic = kn_text_equals_nocase(wanted, "auto");
    kn_device *found = automatic ? best_device() : kn_match_name(wanted);
    if (!found)
        return kn_device_slots() <= 1 ? kn_fail_no_device() : fail_unknown(wanted);
    *device = found;
    return KN_OK;
}

kn_device *kn_device_open(const char *name)
{
    kn_device *device;
    if (kn_device_find(&device, name) != KN_OK)
        return NULL;
    return kn_device_is_host(device) || kn_device_ensure_open(device) == KN_OK ? device : NULL;
}

kn_device *kn_try_gpu(int index)
{
    kn_device *device = NULL;
    if (kn_devices_find() != KN_OK)
        return NULL;
    device = kn_match_type(KN_DEVICE_GPU, index);
    if (!device)
        device = kn_match_type(KN_DEVICE_CPU, 0);
    if (!device)
        kn_fail_no_device();
    return device;
}

int kn_try_all_gpus(kn_device **devices, int capacity)
{
    if (kn_devices_find() != KN_OK)
        return 0;
    if (!devices)
        capacity = 0;
    int count = kn_gpu_count();
    for (int i = 0; i < count && i < capacity; i++)
        devices[i] = kn_match_type(KN_DEVICE_GPU, i);
    if (count > 0)
        return count;
    kn_device *cpu = kn_match_type(KN_DEVICE_CPU, 0);
    if (cpu && capacity > 0)
        devices[0] = cpu;
    return cpu ? 1 : 0;
}
