/* rt/device/peers.c - which programs a device accepts, and which devices can access each other's memory. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "rt/device/device_struct.h"

/* From cl_ext.h and OpenCL 3.0; named here because older headers lack them. */
#define OPENCL_C_ALL_VERSIONS 0x1066
#define IL_VERSION 0x105B
#define AMD_NUM_P2P_DEVICES 0x4088
#define AMD_P2P_DEVICES 0x4089

/* --- programs --------------------------------------------------------------------------------- */

typedef struct named_version { /* cl_name_version */
    cl_uint version;           /* major in the top 10 bits, minor in the next 10 */
    char name[64];
} named_version;

/* Before the next word. */
static const char *blank(const kn_text *text) { return text->length > 0 ? " " : ""; }

static void append_opencl_c(kn_text *text, const kn_device *device)
{
    named_version versions[32];
    size_t size = 0;
    if (device->limits.opencl_version >= 300 &&
        clGetDeviceInfo(device->id, OPENCL_C_ALL_VERSIONS, sizeof versions, versions, &size) == CL_SUCCESS) {
        for (size_t i = 0; i < size / sizeof versions[0]; i++)
            kn_text_format(text, "%sCL%u.%u", blank(text), versions[i].version >> 22, versions[i].version >> 12 & 1023);
        return;
    }
    char version[128] = "";
    unsigned major = 1, minor = 0;
    clGetDeviceInfo(device->id, CL_DEVICE_OPENCL_C_VERSION, sizeof version, version, NULL);
    if (sscanf(version, "OpenCL C %u.%u", &major, &minor) == 2)
        kn_text_format(text, "%sCL%u.%u", blank(text), major, minor);
}

char *kn_device_arch_list(const kn_device *device)
{
    if (!device)
        return kn_fail_argument_null("kn_device_arch_list", "device"), NULL;
    if (kn_device_is_host(device))
        return kn_fail(KN_ERR_DEVICE, "kn_device_arch_list: the host runs no programs"), NULL;
    kn_text text = {0};
    append_opencl_c(&text, device);
    char languages[256] = "";
    clGetDeviceInfo(device->id, IL_VERSION, sizeof languages, languages, NULL);
    if (*languages)
        kn_text_format(&text, "%s%s", blank(&text), languages);
    if (kn_has_word(device->extensions, "cl_nv_device_attribute_query"))
        kn_text_format(&text, "%ssm_%d%d", blank(&text), device->limits.capability_major,
                       device->limits.capability_minor);
    return kn_text_finish(&text);
}

/* --- peers ------------------------------------------------------------------------------------ */

static bool lists_peer(const kn_device *device, cl_device_id peer)
{
    cl_uint count = 0;
    cl_device_id peers[KN_MAX_DEVICES];
    if (!kn_has_word(device->extensions, "cl_amd_copy_buffer_p2p") ||
        clGetDeviceInfo(device->id, AMD_NUM_P2P_DEVICES, sizeof count, &count, NULL) != CL_SUCCESS || count == 0 ||
        count > KN_MAX_DEVICES ||
        clGetDeviceInfo(device->id, AMD_P2P_DEVICES, count * sizeof peers[0], peers, NULL) != CL_SUCCESS)
        return false;
    for (cl_uint i = 0; i < count; i++)
        if (peers[i] == peer)
            return true;
    return false;
}

bool kn_can_device_access_peer(const kn_device *device, const kn_device *peer)
{
    if (!device || !peer)
        return kn_fail_argument_null("kn_can_device_access_peer", device ? "peer" : "device"), false;
    if (device == peer || kn_device_is_host(device) || kn_device_is_host(peer) || device->platform != peer->platform)
        return false;
    if (device->limits.unified_memory && peer->limits.unified_memory)
        return true;
    return lists_peer(device, peer->id);
}
