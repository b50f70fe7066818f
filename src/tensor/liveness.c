/* tensor/liveness.c - guard mode (KOINE_GUARD=1) detects tensors used after their last reference was released. */
#include "tensor/liveness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/threads.h"
#include "tensor/tensor.h"

/* The number of released tensors kept, without their memory. */
#define KEPT 65536

static struct {
    kn_mutex lock;
    kn_tensor *tensors[KEPT];
    unsigned next;
} released = {.lock = KN_MUTEX_INIT};

/* Their `storage` then: no memory, only the device, for messages. */
static kn_storage no_storage[KN_MAX_DEVICES];

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool guarded;

static void read_environment(void)
{
    const char *guard = getenv("KOINE_GUARD");
    guarded = guard && strcmp(guard, "1") == 0;
}

bool kn_tensors_are_guarded(void)
{
    pthread_once(&once, read_environment);
    return guarded;
}

void kn_tensor_keep_released(kn_tensor *tensor, kn_device *device)
{
    kn_lock(&released.lock);
    kn_storage *storage = &no_storage[kn_device_slot(device)];
    storage->device = device;
    tensor->storage = storage;
    tensor->autograd = NULL;
    kn_tensor *oldest = released.tensors[released.next];
    released.tensors[released.next] = tensor;
    released.next = (released.next + 1) % KEPT;
    kn_unlock(&released.lock);
    kn_free(oldest);
}

static bool is_live(const kn_tensor *tensor)
{
    return !tensor || !kn_tensors_are_guarded() || atomic_load(&tensor->references) > 0;
}

kn_status kn_tensor_check_live(const kn_tensor *tensor, const char *name)
{
    if (is_live(tensor))
        return KN_OK;
    char text[KN_DESCRIBE];
    return kn_fail(KN_ERR_STATE, "%s, %s, is used after %s; kn_retain keeps a tensor alive", name,
                   kn_tensor_describe(text, sizeof text, tensor),
                   tensor->scope_released ? "the scope that it belonged to ended"
                                          : "kn_release dropped its last reference");
}

kn_status kn_tensor_check_live_input(const kn_tensor *tensor, int index)
{
    char name[32];
    if (is_live(tensor))
        return KN_OK;
    snprintf(name, sizeof name, "input %d", index);
    return kn_tensor_check_live(tensor, name);
}

kn_status kn_check_tensor(const char *function, const char *name, const kn_tensor *tensor)
{
    if (!tensor)
        return kn_fail_argument_null(function, name);
    kn_status status = kn_tensor_check_live(tensor, name);
    if (status != KN_OK)
        kn_error_prefix("%s", function);
    return status;
}
