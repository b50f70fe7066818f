/* train/pace.c - keeps the host a few steps ahead of the device and no more. */
#include "train/pace.h"

#include "base/error.h"

#define STEPS_PER_EVENT 4

kn_status kn_pace_step(kn_pace *pace, kn_stream *stream)
{
    if (stream == NULL)
        return kn_error_status();
    if (++pace->steps < STEPS_PER_EVENT)
        return KN_OK;
    pace->steps = 0;
    kn_event *event;
    KN_TRY(kn_event_record(&event, stream));
    kn_status status = pace->previous != NULL ? kn_event_synchronize(pace->previous) : KN_OK;
    kn_event_free(pace->previous);
    pace->previous = event;
    return status;
}

void kn_pace_end(kn_pace *pace)
{
    kn_event_free(pace->previous);
    *pace = (kn_pace){0};
}
