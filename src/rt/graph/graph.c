/* rt/graph/graph.c - graphs (koine/graph.h): a recording, its memory pool, its replays. */
#include <koine/graph.h>
#include <stdio.h>

#include "base/error.h"
#include "base/fork.h"
#include "base/memory.h"
#include "base/text.h"
#include "rt/graph/recording.h"
#include "rt/stream/queue.h"
#include "rt/stream/settle.h"
#include "rt/stream/wait.h"

struct kn_graph {
    kn_recording *recording; /* NULL: empty */
    kn_mem_pool *pool;
    kn_stream *capturing; /* the stream; NULL: no capture in progress */
    kn_graph *outer;      /* while captured: the thread's enclosing capture */
    kn_stream *last;      /* the stream of the last replay */
    uint64_t last_id;
    bool has_run;
    char failure[512]; /* of the last capture; "": it succeeded */
};

kn_graph *kn_graph_new(void) { return kn_calloc(1, sizeof(kn_graph)); }

/* --- the capture ------------------------------------------------------------------------------ */

/* The thread's open captures. A graph may be freed inside the block that captures it: the end of the block then does
 * not find it here, and does nothing. */
static _Thread_local kn_graph *captures;

static kn_graph **find_capture(const kn_graph *graph)
{
    kn_graph **link = &captures;
    while (*link && *link != graph)
        link = &(*link)->outer;
    return *link ? link : NULL;
}

static kn_status prepare_pool(kn_graph *graph, kn_device *device)
{
    if (!graph->pool)
        return kn_status_of(graph->pool = kn_mem_pool_new(device));
    if (kn_mem_pool_device(graph->pool) == device)
        return KN_OK;
    return kn_fail(KN_ERR_DEVICE, "kn_graph_capture_begin: the graph's pool is on %s, but the stream on %s",
                   kn_device_string(kn_mem_pool_device(graph->pool)), kn_device_string(device));
}

/* What another thread has deferred on the stream is not the capture's to record. */
static kn_status start(kn_stream *stream, kn_graph_capture *capture)
{
    for (;;) {
        KN_TRY(kn_stream_enter(stream, "another capture"));
        if (!kn_stream_start_capture(stream, &capture->base))
            return kn_fail(KN_ERR_STATE, "kn_graph_capture_begin: another thread is capturing on this stream");
        if (!kn_stream_has_deferred(stream))
            return KN_OK;
        kn_stream_stop_capture(stream);
    }
}

static kn_status begin(kn_graph *graph, kn_stream *stream)
{
    KN_TRY(prepare_pool(graph, stream->device));
    kn_graph_capture *capture = kn_graph_capture_new(stream->device, graph->pool);
    if (!capture)
        return KN_ERR_MEMORY;
    const kn_status status = start(stream, capture);
    if (status != KN_OK) {
        kn_recording_free(capture->recording);
        kn_free(capture);
        return status;
    }
    kn_stream_redirect_allocations(stream, graph->pool);
    if (!capture->base.blind)
        kn_error_clear(); /* so that an error found at the end belongs to the capture */
    graph->capturing = stream;
    graph->outer = captures;
    captures = graph;
    return KN_OK;
}

kn_status kn_graph_capture_begin(kn_graph *graph, kn_stream *stream)
{
    if (!graph)
        return kn_fail_argument_null("kn_graph_capture_begin", "graph");
    if (graph->capturing || graph->recording)
        return kn_fail(KN_ERR_STATE, "kn_graph_capture_begin: the graph %s",
                       graph->capturing ? "is already being captured" : "holds a recording: kn_graph_reset it first");
    if (!stream) {
        kn_device *device = kn_device_current();
        stream = device ? kn_stream_current(device) : NULL;
    }
    kn_status status = stream ? begin(graph, stream) : kn_error_status();
    graph->failure[0] = '\0';
    if (status != KN_OK)
        snprintf(graph->failure, sizeof graph->failure, "%s", kn_error_message());
    return status == KN_OK ? KN_OK : kn_fail(status, "%s", graph->failure);
}

/* The result of a capture, with a separate message for memory freed inside it. */
static kn_status outcome(kn_graph_capture *capture)
{
    kn_capture *base = &capture->base;
    if (base->failure == KN_OK && !base->blind && kn_error_status() != KN_OK) {
        base->failure = kn_error_status();
        snprintf(base->message, sizeof base->message, "%s", kn_error_message());
    }
    if (base->failure != KN_OK)
        return kn_fail(base->failure, "the capture failed: %s", base->message);
    if (kn_recording_lost_memory(capture->recording))
        return kn_fail(KN_ERR_STATE, "the capture failed: a tensor created before it was used and then freed in it; "
                                     "keep the tensors that a graph uses as long as the graph");
    return KN_OK;
}

kn_status kn_graph_capture_end(kn_graph *graph)
{
    if (!graph)
        return kn_fail_argument_null("kn_graph_capture_end", "graph");
    kn_graph **link = find_capture(graph);
    if (!link)
        return kn_fail(KN_ERR_STATE, "kn_graph_capture_end: the graph is not being captured by this thread");
    *link = graph->outer;
    kn_stream *stream = graph->capturing;
    kn_graph_capture *capture = (kn_graph_capture *)kn_stream_own_capture(stream);
    kn_capture_note(&capture->base, kn_stream_settle(stream));
    kn_stream_redirect_allocations(stream, NULL);
    kn_stream_stop_capture(stream);
    graph->capturing = NULL;
    kn_status status = outcome(capture);
    if (status == KN_OK) {
        graph->recording = capture->recording;
    } else {
        snprintf(graph->failure, sizeof graph->failure, "%s", kn_error_message());
        kn_recording_free(capture->recording);
        kn_fail(status, "%s", graph->failure);
    }
    kn_free(capture);
    return status;
}

bool kn_stream_is_capturing(const kn_stream *stream) { return stream && kn_stream_has_capture(stream); }

bool kn_is_current_stream_capturing(kn_device *device)
{
    if (!device)
        device = kn_device_current();
    return device && !kn_device_is_host(device) && kn_stream_is_capturing(kn_stream_current(device));
}

/* --- replays ---------------------------------------------------------------------------------- */

static kn_status check_replayable(const kn_graph *graph)
{
    if (graph->capturing)
        return kn_fail(KN_ERR_STATE, "kn_graph_replay: the graph is still being captured");
    if (!graph->recording)
        return kn_fail(KN_ERR_STATE, "kn_graph_replay: the graph is empty%s%s", graph->failure[0] ? ": " : "",
                       graph->failure);
    if (kn_recording_lost_memory(graph->recording))
        return kn_fail(
            KN_ERR_STATE,
            "kn_graph_replay: a tensor that the graph uses, created before the capture, has been freed: capture again");
    return KN_OK;
}

/* Replays of one graph use the same memory, so they run one after another, whatever their streams. */
static kn_status follow_last(kn_graph *graph, kn_stream *stream)
{
    if (graph->last && graph->last != stream && kn_stream_id(graph->last) == graph->last_id) {
        kn_event *event;
        KN_TRY(kn_event_new_recorded(&event, graph->last)); /* also while something is captured there */
        kn_status status = kn_stream_wait_event(stream, event);
        kn_event_free(event);
        KN_TRY(status);
    }
    for (int i = 0; i < graph->recording->num_outside; i++)
        kn_buffer_mark_use(graph->recording->outside[i]->buffer, stream);
    return KN_OK;
}

kn_status kn_graph_replay(kn_graph *graph)
{
    if (!graph)
        return kn_fail_argument_null("kn_graph_replay", "graph");
    KN_TRY(check_replayable(graph));
    kn_recording *recording = graph->recording;
    kn_stream *stream = kn_stream_current(recording->device);
    if (!stream)
        return kn_error_status();
    KN_TRY(kn_stream_refuse_capture(stream, "the replay of a graph"));
    KN_TRY(kn_stream_settle(stream));
    KN_TRY(follow_last(graph, stream));
    bool first = !graph->has_run;
    graph->last = stream; /* also when it fails halfway */
    graph->last_id = kn_stream_id(stream);
    KN_TRY(kn_recording_replay(stream, recording, first));
    graph->has_run = true;
    if (first && recording->device->quirks.compiles_at_first_launch) /* see rt/device/quirks.h */
        kn_stream_finish(stream);
    return KN_OK;
}

/* --- the end ---------------------------------------------------------------------------------- */

static void await_replays(kn_graph *graph)
{
    if (graph->last && kn_stream_id(graph->last) == graph->last_id)
        kn_stream_finish(graph->last);
    graph->last = NULL;
    graph->has_run = false;
}

kn_status kn_graph_reset(kn_graph *graph)
{
    if (!graph)
        return kn_fail_argument_null("kn_graph_reset", "graph");
    if (graph->capturing)
        return kn_fail(KN_ERR_STATE, "kn_graph_reset: the graph is being captured: end that first");
    await_replays(graph);
    kn_recording_free(graph->recording);
    graph->recording = NULL;
    kn_mem_pool_release(graph->pool);
    graph->pool = NULL;
    graph->failure[0] = '\0';
    return KN_OK;
}

void kn_graph_free(kn_graph *graph)
{
    if (!graph || kn_is_forked())
        return;
    if (find_capture(graph)) {
        KN_PRESERVE_ERROR;
        kn_graph_capture_end(graph);
    }
    if (graph->capturing) /* by another thread, which has to end it */
        return;
    kn_graph_reset(graph);
    kn_free(graph);
}

/* --- looking ---------------------------------------------------------------------------------- */

kn_mem_pool *kn_graph_pool(kn_graph *graph) { return graph ? graph->pool : NULL; }

kn_status kn_graph_set_pool(kn_graph *graph, kn_mem_pool *pool)
{
    if (!graph || !pool)
        return kn_fail_argument_null("kn_graph_set_pool", graph ? "pool" : "graph");
    if (graph->recording || graph->capturing)
        return kn_fail(KN_ERR_STATE, "kn_graph_set_pool: the graph holds a recording: kn_graph_reset it first");
    kn_mem_pool_retain(pool);
    kn_mem_pool_release(graph->pool);
    graph->pool = pool;
    return KN_OK;
}

int kn_graph_command_count(const kn_graph *graph)
{
    return graph && graph->recording ? graph->recording->num_commands : 0;
}

char *kn_graph_debug_dump(kn_graph *graph)
{
    kn_text text = {0};
    int count = kn_graph_command_count(graph);
    kn_text_format(&text, "%d commands\n", count);
    for (int i = 0; i < count; i++) {
        const kn_command *command = &graph->recording->commands[i];
        kn_text_format(&text, "%4d  %-28s", i, kn_command_operation(command));
        if (command->kernel)
            kn_text_format(&text, " %-32s %zu x %zu x %zu", command->kernel_name, command->global[0],
                           command->global[1] ? command->global[1] : 1, command->global[2] ? command->global[2] : 1);
        else if (!command->is_gemm)
            kn_text_format(&text, " %zu bytes", command->transfer.bytes);
        kn_text_append(&text, "\n");
    }
    return kn_text_finish(&text);
}
