#include "runtime/metrics/table.h"

namespace gofer::internal {

using Snapshot = debug::metrics_snapshot;

namespace {

constexpr Number all_numbers[] = {
    {"/sched/gomaxprocs:threads", "gofer_gomaxprocs", "", "Processors in use: GOMAXPROCS.",
     &Snapshot::gomaxprocs},
    {"/sched/goroutines:goroutines", "gofer_goroutines", "", "Goroutines that have not ended.",
     &Snapshot::goroutines},
    {"/sched/goroutines/running:goroutines", "gofer_goroutines_by_state", "state=\"running\"",
     "Goroutines by state; not_in_go: in announced calls, or without a processor.",
     &Snapshot::goroutines_running},
    {"/sched/goroutines/runnable:goroutines", "gofer_goroutines_by_state", "state=\"runnable\"", "",
     &Snapshot::goroutines_runnable},
    {"/sched/goroutines/waiting:goroutines", "gofer_goroutines_by_state", "state=\"waiting\"", "",
     &Snapshot::goroutines_waiting},
    {"/sched/goroutines/not-in-go:goroutines", "gofer_goroutines_by_state", "state=\"not_in_go\"",
     "", &Snapshot::goroutines_not_in_go},
    {"/sched/goroutines-created:goroutines", "gofer_goroutines_created_total", "",
     "Goroutines that were ever created.", &Snapshot::goroutines_created},

    {"/sched/threads/total:threads", "gofer_threads", "", "Threads of the runtime.",
     &Snapshot::threads},
    {"/gofer/threads/with-processor:threads", "gofer_threads_by_state", "state=\"with_processor\"",
     "Threads by state; spinning ones have a processor, too.", &Snapshot::threads_with_processor},
    {"/gofer/threads/spinning:threads", "gofer_threads_by_state", "state=\"spinning\"", "",
     &Snapshot::threads_spinning},
    {"/gofer/threads/idle:threads", "gofer_threads_by_state", "state=\"idle\"", "",
     &Snapshot::threads_idle},
    {"/gofer/threads/tied:threads", "gofer_threads_by_state", "state=\"tied\"", "",
     &Snapshot::threads_tied},
    {"/gofer/threads/bound:threads", "gofer_threads_by_state", "state=\"bound\"", "",
     &Snapshot::threads_bound},
    {"/gofer/threads/in-calls:threads", "gofer_threads_by_state", "state=\"in_calls\"", "",
     &Snapshot::threads_in_calls},
    {"/gofer/threads/started:threads", "gofer_threads_started_total", "",
     "Threads that the runtime has started.", &Snapshot::threads_started},

    {"/gofer/procs/running:procs", "gofer_procs_by_state", "state=\"running\"",
     "Processors by state; those in announced calls are running, too.", &Snapshot::procs_running},
    {"/gofer/procs/in-calls:procs", "gofer_procs_by_state", "state=\"in_calls\"", "",
     &Snapshot::procs_in_calls},
    {"/gofer/procs/idle:procs", "gofer_procs_by_state", "state=\"idle\"", "",
     &Snapshot::procs_idle},
    {"/gofer/procs/stopped:procs", "gofer_procs_by_state", "state=\"stopped\"", "",
     &Snapshot::procs_stopped},

    {"/gofer/queues/global:goroutines", "gofer_global_queue_goroutines", "",
     "Goroutines in the queue of all processors.", &Snapshot::global_queue},
    {"/gofer/queues/global/urgent:goroutines", "gofer_global_queue_urgent_goroutines", "",
     "Of those, goroutines that a timer or a descriptor has woken.",
     &Snapshot::global_queue_urgent},
    {"/gofer/queues/global/tied:goroutines", "gofer_global_queue_tied_goroutines", "",
     "Of those, goroutines that wait for a processor on their own threads.",
     &Snapshot::global_queue_tied},
    {"/gofer/queues/local:goroutines", "gofer_local_queue_goroutines", "",
     "Goroutines in the queues of processors, in all.", &Snapshot::local_queues},
    {"/gofer/queues/local/longest:goroutines", "gofer_local_queue_longest_goroutines", "",
     "Goroutines in the longest queue of a processor.", &Snapshot::local_queue_longest},

    {"/gofer/sched/switches:switches", "gofer_switches_total", "",
     "Times that a goroutine was resumed.", &Snapshot::switches},
    {"/gofer/sched/steals:steals", "gofer_steals_total", "",
     "Times that a processor found work at another one.", &Snapshot::steals},
    {"/gofer/sched/stolen:goroutines", "gofer_stolen_goroutines_total", "",
     "Goroutines that moved to a processor that had none.", &Snapshot::stolen},
    {"/gofer/sched/hand-offs:procs", "gofer_hand_offs_total", "",
     "Times that a thread left its processor to another one.", &Snapshot::hand_offs},
    {"/gofer/sched/retakes/announced:procs", "gofer_retakes_total", "call=\"announced\"",
     "Processors that were taken from threads in calls.", &Snapshot::retakes_announced},
    {"/gofer/sched/retakes/asleep:procs", "gofer_retakes_total", "call=\"asleep\"", "",
     &Snapshot::retakes_asleep},
    {"/gofer/sched/preemptions/flag:preemptions", "gofer_preemptions_total", "layer=\"flag\"",
     "Goroutines that were made to give way, by how they were reached.",
     &Snapshot::preemptions_flag},
    {"/gofer/sched/preemptions/prologue:preemptions", "gofer_preemptions_total",
     "layer=\"prologue\"", "", &Snapshot::preemptions_prologue},
    {"/gofer/sched/preemptions/signal:preemptions", "gofer_preemptions_total", "layer=\"signal\"",
     "", &Snapshot::preemptions_signal},

    {"/gofer/poll/visits:visits", "gofer_poll_visits_total", "",
     "Times that the kernel was asked for events of descriptors.", &Snapshot::poll_visits},
    {"/gofer/poll/wakeups:wakeups", "gofer_poll_wakeups_total", "",
     "Goroutines and threads that events of descriptors have woken.", &Snapshot::poll_wakeups},
    {"/gofer/poll/registered:descriptors", "gofer_poll_descriptors", "",
     "Descriptors that are watched.", &Snapshot::poll_registered},
    {"/gofer/poll/waiting:waiters", "gofer_poll_waiters", "",
     "Goroutines and threads that wait for a descriptor.", &Snapshot::poll_waiting},
    {"/gofer/timers/set:timers", "gofer_timers", "", "Timers that are set.", &Snapshot::timers},
    {"/gofer/timers/fired:timers", "gofer_timers_fired_total", "", "Timers that have fired.",
     &Snapshot::timers_fired},

    {"/gofer/stacks/reserved:bytes", "gofer_stacks_reserved_bytes", "",
     "Address space for stacks; only touched pages of it are memory.",
     &Snapshot::stacks_reserved_bytes},
    {"/gofer/stacks/in-use:stacks", "gofer_stacks", "state=\"in_use\"",
     "Stacks of goroutines that have begun to run, and stacks that wait for new ones.",
     &Snapshot::stacks_in_use},
    {"/gofer/stacks/cached:stacks", "gofer_stacks", "state=\"cached\"", "",
     &Snapshot::stacks_cached},
    {"/gofer/stacks/in-use:bytes", "gofer_stacks_bytes", "state=\"in_use\"",
     "Address space of stacks by state.", &Snapshot::stacks_in_use_bytes},
    {"/gofer/stacks/cached:bytes", "gofer_stacks_bytes", "state=\"cached\"", "",
     &Snapshot::stacks_cached_bytes},
    {"/gofer/stacks/given-back:stacks", "gofer_stacks_given_back_total", "",
     "Times that a stack gave unused pages back to the kernel.", &Snapshot::stacks_given_back},
    {"/gofer/records:bytes", "gofer_records_bytes", "",
     "Memory of the runtime's records of goroutines, threads, processors and descriptors.",
     &Snapshot::record_bytes},
};

constexpr NumberOfTimes all_histograms[] = {
    {"/sched/latencies:seconds", "gofer_sched_latency_seconds",
     "How long goroutines were runnable before they ran; estimated from samples.",
     &Snapshot::latency},
    {"/gofer/sched/slices:seconds", "gofer_sched_slice_seconds",
     "How long goroutines ran until they left the processor; estimated from samples.",
     &Snapshot::slices},
    {"/sched/pauses/stopping/other:seconds", "gofer_sched_pauses_stopping_seconds",
     "How long it took until the world had stopped.", &Snapshot::pauses_stopping},
    {"/sched/pauses/total/other:seconds", "gofer_sched_pauses_total_seconds",
     "How long the world was stopped, with the time that stopping took.", &Snapshot::pauses_total},
};

}  // namespace

std::span<const Number> numbers() { return all_numbers; }
std::span<const NumberOfTimes> histograms() { return all_histograms; }

}  // namespace gofer::internal
