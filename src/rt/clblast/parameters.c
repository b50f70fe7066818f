/* rt/clblast/parameters.c - sets of parameters of CLBlast's kernels, and their application. */
#include "rt/clblast/parameters.h"

#include <clblast_c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "rt/device/device_struct.h"
#include "rt/tuning/tuning.h"

/* --- the sets ----------------------------------------------------------------------------------------------------- *
 * CLBlast's names. A work-group of MDIMC x NDIMC computes MWG x NWG of the result in steps of KWG, unrolled by KWI; SA,
 * SB: through local memory, filled by rows of MDIMA and NDIMB work-items; VWM, VWN: widths of vectors; STRM, STRN: a
 * work-item's columns and rows are strided by the group. Rules that CLBlast does not check: KWI divides KWG; MDIMC VWM
 * and MDIMA VWM divide MWG; NDIMC VWN and NDIMB VWN divide NWG; MDIMC NDIMC / MDIMA and / NDIMB divide KWG.
 * tests/rt/clblast/test_clblast.c checks them. */
#define GEMM(mwg, nwg, kwg, kwi, mdimc, ndimc, mdima, ndimb, vwm, vwn, sa, sb, str)                                    \
    "GEMMK=0 KREG=1 MWG=" #mwg " NWG=" #nwg " KWG=" #kwg " KWI=" #kwi " MDIMC=" #mdimc " NDIMC=" #ndimc                \
    " MDIMA=" #mdima " NDIMB=" #ndimb " VWM=" #vwm " VWN=" #vwn " SA=" #sa " SB=" #sb " STRM=" #str " STRN=" #str

/* One work-item that keeps 64 x 4 results in explicit vectors: measured on PoCL, two cores with AVX-512, 1024^3, f32:
 * 153 GFLOP/s, 64 x 8 119, 32 x 8 139, 16 x 16 138; CLBlast's own choice 34, and its Xgemm with that 10. */
#define GEMM_OF_CPUS GEMM(64, 4, 32, 1, 1, 1, 1, 1, 8, 4, 0, 0, 0)

static const char *const gemm[] = {
    GEMM_OF_CPUS,
    GEMM(32, 8, 32, 1, 1, 1, 1, 1, 8, 8, 0, 0, 0),
    GEMM(16, 16, 32, 1, 1, 1, 1, 1, 8, 8, 0, 0, 0),
    /* GPUs: through local memory, */
    GEMM(128, 128, 16, 2, 16, 16, 16, 16, 4, 4, 1, 1, 0),
    GEMM(128, 128, 16, 2, 16, 16, 16, 16, 4, 4, 1, 1, 1),
    GEMM(128, 128, 16, 2, 16, 16, 32, 32, 4, 4, 1, 1, 0),
    GEMM(128, 128, 32, 2, 16, 16, 16, 16, 4, 4, 1, 1, 0),
    GEMM(128, 64, 16, 2, 16, 8, 16, 16, 4, 4, 1, 1, 0),
    GEMM(64, 128, 16, 2, 8, 16, 16, 16, 4, 4, 1, 1, 0),
    GEMM(64, 64, 16, 2, 8, 8, 8, 8, 4, 4, 1, 1, 0),
    GEMM(64, 64, 16, 2, 16, 16, 16, 16, 4, 4, 1, 1, 0),
    GEMM(64, 64, 32, 2, 8, 8, 16, 16, 2, 2, 1, 1, 1),
    GEMM(32, 32, 32, 2, 8, 8, 8, 8, 4, 4, 1, 1, 0),
    /* from caches alone, */
    GEMM(128, 128, 32, 2, 16, 16, 16, 16, 4, 4, 0, 0, 0),
    GEMM(64, 64, 32, 2, 8, 8, 8, 8, 4, 4, 0, 0, 0),
    GEMM(64, 64, 32, 2, 16, 16, 16, 16, 2, 2, 0, 0, 0),
    /* one operand through each. */
    GEMM(128, 128, 32, 2, 16, 16, 16, 16, 4, 4, 0, 1, 0),
    GEMM(128, 64, 32, 2, 32, 8, 32, 16, 4, 2, 1, 0, 0),
};

#define DIRECT(wgd, kwid, mdimcd, ndimcd, mdimad, ndimbd, vwmd, vwnd, pad)                                             \
    "WGD=" #wgd " KWID=" #kwid " MDIMCD=" #mdimcd " NDIMCD=" #ndimcd " MDIMAD=" #mdimad " NDIMBD=" #ndimbd             \
    " VWMD=" #vwmd " VWND=" #vwnd " PADA=" #pad " PADB=" #pad

/* On PoCL a set with few work-items takes minutes to compile (WGD=16 with one: 181 s, at 117 GFLOP/s): none of those.
 */
static const char *const direct[] = {
    DIRECT(32, 2, 8, 8, 8, 8, 4, 4, 1),     DIRECT(32, 2, 8, 8, 8, 8, 2, 2, 1),
    DIRECT(32, 2, 16, 16, 16, 16, 2, 2, 1), DIRECT(32, 2, 16, 8, 16, 8, 2, 2, 1),
    DIRECT(64, 2, 16, 16, 16, 16, 4, 4, 1), DIRECT(64, 2, 8, 8, 8, 8, 4, 4, 1),
    DIRECT(16, 2, 8, 8, 8, 8, 2, 2, 1),     DIRECT(8, 2, 8, 8, 8, 8, 1, 1, 1),
};

#define FROM(size) "XGEMM_MIN_INDIRECT_SIZE=" #size
static const char *const threshold[] = {FROM(1), FROM(256), FROM(512), FROM(1024), FROM(1536), FROM(2048)};

#define KERNEL(name, sets)                                                                                             \
    {                                                                                                                  \
        name, sets, (int)(sizeof(sets) / sizeof((sets)[0]))                                                            \
    }
static const struct {
    const char *name;
    const char *const *sets;
    int count;
} kernels[KN_CLBLAST_KERNELS] = {KERNEL("Xgemm", gemm), KERNEL("XgemmDirect", direct),
                                 KERNEL("GemmRoutine", threshold)};

const char *kn_clblast_kernel_name(kn_clblast_kernel kernel) { return kernels[kernel].name; }

const char *kn_clblast_candidate(kn_clblast_kernel kernel, int index)
{
    return index >= 0 && index < kernels[kernel].count ? kernels[kernel].sets[index] : NULL;
}

/* 0 if the set has no such parameter. */
static size_t value_of(const char *candidate, const char *name)
{
    const size_t length = strlen(name);
    for (const char *word = candidate; word; word = strchr(word, ' ')) {
        word += *word == ' ';
        if (strncmp(word, name, length) == 0 && word[length] == '=')
            return strtoul(word + length + 1, NULL, 10);
    }
    return 0;
}

size_t kn_clblast_candidate_items(const char *candidate)
{
    return value_of(candidate, "MDIMC") * value_of(candidate, "NDIMC") +
           value_of(candidate, "MDIMCD") * value_of(candidate, "NDIMCD");
}

bool kn_clblast_candidate_fits(const char *candidate, const kn_limits *limits, bool f64)
{
    const size_t element = f64 ? 8 : 4, wgd = value_of(candidate, "WGD"), kwg = value_of(candidate, "KWG");
    const size_t elements = kwg * (value_of(candidate, "SA") * value_of(candidate, "MWG") +
                                   value_of(candidate, "SB") * value_of(candidate, "NWG")) +
                            2 * wgd * (wgd + value_of(candidate, "PADA"));
    return kn_clblast_candidate_items(candidate) <= limits->max_work_group_size &&
           elements * element <= limits->local_memory;
}

/* Local memory and many work-items do not help on a CPU device: all products, even the smallest, use the kernel with
 * large vectors, which saves compiling the other one. */
const char *kn_clblast_default(const kn_limits *limits, kn_clblast_kernel kernel)
{
    if (!limits->is_cpu || kernel == KN_CLBLAST_DIRECT)
        return KN_CLBLAST_OWN;
    return kernel == KN_CLBLAST_GEMM ? gemm[0] : threshold[0];
}

const char *kn_clblast_question(char buffer[KN_CLBLAST_QUESTION], kn_clblast_kernel kernel, bool f64)
{
    snprintf(buffer, KN_CLBLAST_QUESTION, "parameters of CLBlast's %s, %s", kernels[kernel].name, f64 ? "f64" : "f32");
    return buffer;
}

/* --- application -------------------------------------------------------------------------------------------------- */

/* The first use of a routine fills a program cache, which only one thread may do at a time and during which parameters
 * must not change: one lock guards all calls. */
static kn_mutex lock = KN_MUTEX_INIT;
static struct {
    bool prepared[KN_CLBLAST_KERNELS];
    const char *used[KN_CLBLAST_KERNELS]; /* NULL: CLBlast's own */
} states[KN_MAX_DEVICES][2];

void kn_clblast_lock(void) { kn_lock(&lock); }
void kn_clblast_unlock(void) { kn_unlock(&lock); }

/* CLBlast requires all parameters of the kernel. */
static CLBlastStatusCode override(const kn_device *device, kn_clblast_kernel kernel, bool f64, const char *candidate)
{
    enum { MOST = 24 };
    char text[512], *rest = NULL;
    const char *names[MOST];
    size_t values[MOST], count = 0;
    snprintf(text, sizeof text, "%s", candidate);
    for (char *word = strtok_r(text, " ", &rest); word && count < MOST; word = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(word, '=');
        *equals = '\0';
        names[count] = word;
        values[count++] = strtoul(equals + 1, NULL, 10);
    }
    return CLBlastOverrideParameters(device->id, kernels[kernel].name,
                                     f64 ? CLBlastPrecisionDouble : CLBlastPrecisionSingle, count, names, values);
}

static const char *find_candidate(kn_clblast_kernel kernel, const char *text)
{
    for (int i = 0; i < kernels[kernel].count; i++)
        if (strcmp(kernels[kernel].sets[i], text) == 0)
            return kernels[kernel].sets[i];
    return NULL;
}

static kn_status use(kn_device *device, kn_clblast_kernel kernel, bool f64, const char *text)
{
    const char **used = &states[kn_device_slot(device)][f64].used[kernel];
    const bool own = strcmp(text, KN_CLBLAST_OWN) == 0;
    const char *candidate = own ? NULL : find_candidate(kernel, text);
    if (*used == candidate && (own || candidate))
        return KN_OK;
    if (own)
        return kn_fail(KN_ERR_STATE, "CLBlast's own parameters of %s can only be restored by restarting the process",
                       kernels[kernel].name);
    if (!candidate || !kn_clblast_candidate_fits(candidate, &device->limits, f64))
        return kn_fail(KN_ERR_ARGUMENT, "CLBlast's %s on %s does not accept these parameters: %.200s",
                       kernels[kernel].name, device->label, text);
    const CLBlastStatusCode code = override(device, kernel, f64, candidate);
    if (code != CLBlastSuccess)
        return kn_fail(KN_ERR_DEVICE, "CLBlast rejected parameters of its %s on %s: status %d", kernels[kernel].name,
                       device->label, (int)code);
    *used = candidate;
    return KN_OK;
}

static void prepare_kernel(kn_device *device, kn_clblast_kernel kernel, bool f64)
{
    char question[KN_CLBLAST_QUESTION];
    kn_tuning_result tuned;
    const bool found = kn_tuning_find(&tuned, device, kn_clblast_question(question, kernel, f64));
    const char *usual = kn_clblast_default(&device->limits, kernel);
    if (found && use(device, kernel, f64, tuned.choice) != KN_OK) {
        kn_log_message(KN_LOG_WARNING, "a tuning result is ignored: %s", kn_error_message());
        use(device, kernel, f64, usual);
    } else if (!found && use(device, kernel, f64, usual) != KN_OK) {
        kn_log_message(KN_LOG_INFO, "%s", kn_error_message());
    }
    kn_tuning_free(&tuned);
}

void kn_clblast_prepare(kn_device *device, bool f64)
{
    for (int kernel = 0; kernel < KN_CLBLAST_KERNELS; kernel++) {
        bool *prepared = &states[kn_device_slot(device)][f64].prepared[kernel];
        if (*prepared)
            continue;
        KN_PRESERVE_ERROR;
        *prepared = true;
        prepare_kernel(device, (kn_clblast_kernel)kernel, f64);
    }
}

const char *kn_clblast_in_use(kn_device *device, kn_clblast_kernel kernel, bool f64)
{
    kn_clblast_lock();
    kn_clblast_prepare(device, f64);
    const char *used = states[kn_device_slot(device)][f64].used[kernel];
    kn_clblast_unlock();
    return used ? used : KN_CLBLAST_OWN;
}

kn_status kn_clblast_use(kn_device *device, kn_clblast_kernel kernel, bool f64, const char *candidate)
{
    kn_clblast_lock();
    states[kn_device_slot(device)][f64].prepared[kernel] = true; /* kn_clblast_prepare does not replace it later */
    kn_status status = use(device, kernel, f64, candidate);
    kn_clblast_unlock();
    return status;
}
