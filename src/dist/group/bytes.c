/* dist/group/bytes.c - see bytes.h. */
#include "dist/group/bytes.h"

#include <string.h>

#include "base/error.h"
#include "tensor/tensor.h"

kn_status kn_group_pass_bytes(kn_group *group, void *data, size_t bytes, int other, bool sends)
{
    kn_tensor *memory = NULL;
    KN_TRY(kn_tensor_new(&memory, KN_U8, 1, &(int64_t){(int64_t)bytes}, kn_device_host()));
    void *place = kn_data(memory);
    kn_status status = place ? KN_OK : kn_error_status();
    if (status == KN_OK && sends)
        memcpy(place, data, bytes);
    if (status == KN_OK)
        status = sends ? kn_group_send(group, memory, other) : kn_group_receive(group, memory, other);
    if (status == KN_OK && !sends)
        memcpy(data, place, bytes);
    kn_release(memory);
    return status;
}
