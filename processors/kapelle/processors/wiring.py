"""Which streams join the processors of the engine, and by which keys.

    signals ─▶ intake ─▶ signals ─▶ triggers ─▶ workflows ─▶ runs ─▶ tasks ─▶ workers
       (name)            ▲  (workflow, trigger)  (workflow)  (instance)         │
                         └── announced ────────── ended ◀─────┘  ▲  reports ────┘
                                                    permits ◀────┘
                                                 (what is limited)

What comes from outside and what processors send each other are different streams, `….commands` and `….internal`. People
and workers write the first; the second is written by members alone, and most of it is delivered within a cycle.
Each stream says what its keys look like: `keys` has the forms, and `fitness` what is asked of a record.
"""

from typing import Final

from kapelle.processors import keys
from kapelle.processors.keys import KeyForm
from kapelle.processors.messages import Foreign
from kapelle.processors.streams import Keep, Stream
from kapelle.schemas import contracts as c

WORKFLOW_COMMANDS: Final = Stream(
    "workflows.commands",
    (
        c.PushVersion,
        c.ActivateVersion,
        c.DeactivateWorkflow,
        c.ChangeProperties,
        c.TagWorkflow,
        c.UntagWorkflow,
        c.DeleteWorkflow,
        c.StartInstances,
        c.TerminateInstance,
        c.TerminateInstances,
        c.UnblockInstances,
        c.SetBreakpoint,
        c.DeleteBreakpoint,
        c.PauseSchedules,
        c.ResumeSchedules,
        c.StartBackfill,
        c.ActOnBackfill,
    ),
    key=KeyForm.WORKFLOW,
)
WORKFLOW_INTERNAL: Final = Stream(
    "workflows.internal",
    (
        c.StartTriggered,
        c.QueueRun,
        c.RecordRunEnd,
        c.LaunchQueued,
        c.EndDisplaced,
        c.TerminateInstances,
        c.UnblockInstances,
        c.StartChild,
        c.EndChild,
        c.TellBreakpoints,
    ),
    key=KeyForm.WORKFLOW,
)
WORKFLOW_EVENTS: Final = Stream(
    "workflows.events",
    (
        c.VersionPushed,
        c.VersionActivated,
        c.TriggersArmed,
        c.WorkflowDeactivated,
        c.PropertiesChanged,
        c.WorkflowDeleted,
        c.InstanceCreated,
        c.StartDuplicated,
        c.InstanceLaunched,
        c.QueueDisplaced,
        c.TerminationRequested,
        c.TerminationProgressed,
        c.InstanceEnded,
        c.InstanceUnblocked,
        c.BreakpointSet,
        c.BreakpointDeleted,
        c.SchedulesArmed,
        c.ScheduleTicked,
        c.SchedulesPaused,
        c.SchedulesResumed,
        c.BackfillStarted,
        c.BackfillProgressed,
        c.BackfillChanged,
        c.CommandSettled,
        c.CommandRefused,
    ),
    Keep.FOR_EVER,
    key=KeyForm.WORKFLOW,
)
RUN_COMMANDS: Final = Stream(
    "runs.commands",
    (c.ActOnStep, c.RestartRun, c.TerminateInstance, c.TerminateChildren, c.UnblockInstances, c.ReportTask),
    key=KeyForm.INSTANCE,
)
RUN_INTERNAL: Final = Stream(
    "runs.internal",
    (
        c.StartRun,
        c.EndQueuedRun,
        c.TerminateRun,
        c.MatchDependency,
        c.RecordChildStart,
        c.RecordChildEnd,
        c.RestartBelow,
        c.RestartChild,
        c.EndChild,
        c.RestartRun,
        c.TerminateChildren,
        c.ChangeBreakpoints,
        c.PassOnBreakpoints,
        c.GrantPermit,
        c.LearnLimit,
    ),
    key=KeyForm.INSTANCE,
)
RUN_EVENTS: Final = Stream(
    "runs.events",
    (
        c.RunStarted,
        c.StepChanged,
        c.LoopEntered,
        c.LoopEnded,
        c.LeaseRenewed,
        c.StepLogged,
        c.DependenciesSet,
        c.DependencyMatched,
        c.ReportRefused,
        c.ActionTaken,
        c.RestartRequested,
        c.ChildrenPlanned,
        c.ChildrenLaunched,
        c.ChildStarted,
        c.ChildEnded,
        c.StepEnding,
        c.RunEnding,
        c.RunEnded,
        c.BreakpointsChanged,
        c.PermitReceived,
        c.LimitLearned,
        c.CommandSettled,
        c.CommandRefused,
    ),
    Keep.FOR_EVER,
    key=KeyForm.INSTANCE,
)
TASKS: Final = Stream("tasks", (c.Task,), key=KeyForm.TASK)
CANCELLATIONS: Final = Stream("tasks.cancellations", (c.CancelTask,), key=KeyForm.TASK)

PERMIT_COMMANDS: Final = Stream("permits.commands", (c.SetLimit, c.RemoveLimit), key=KeyForm.LIMIT)
PERMIT_INTERNAL: Final = Stream(
    "permits.internal", (c.RequestPermit, c.ReturnPermit, c.LimitWorkflow), key=KeyForm.LIMIT
)
PERMIT_EVENTS: Final = Stream(
    "permits.events",
    (
        c.LimitSet,
        c.LimitRemoved,
        c.PermitQueued,
        c.PermitGranted,
        c.PermitReturned,
        c.AdmissionsLeft,
        c.TagWatched,
        c.CommandSettled,
        c.CommandRefused,
    ),
    Keep.FOR_EVER,
    key=KeyForm.LIMIT,
)

SIGNALS: Final = Stream("signals", (c.AnnounceSignal, Foreign))
INTAKE_EVENTS: Final = Stream("intake.events", (), Keep.FOR_EVER)  # there are none: intake remembers nothing
SIGNAL_INTERNAL: Final = Stream(
    "signals.internal",
    (
        c.AnnounceSignal,
        c.SubscribeTrigger,
        c.UnsubscribeTrigger,
        c.AwaitSignal,
        c.ForgetAwait,
        c.ContinueOffers,
        c.OfferPastSignals,
        c.SearchPastSignals,
    ),
    key=KeyForm.SIGNAL,
)
SIGNAL_EVENTS: Final = Stream(
    "signals.events",
    (
        c.SignalAccepted,
        c.SignalDuplicated,
        c.SignalTooLate,
        c.SignalOffered,
        c.TriggerSubscribed,
        c.TriggerUnsubscribed,
        c.StepAwaits,
        c.AwaitEnded,
    ),
    Keep.FOR_EVER,
    key=KeyForm.SIGNAL,
)
TRIGGER_INTERNAL: Final = Stream(
    "triggers.internal", (c.SetTrigger, c.RemoveTrigger, c.DropKept, c.OfferSignal), key=KeyForm.TRIGGER
)
TRIGGER_EVENTS: Final = Stream(
    "triggers.events",
    (
        c.TriggerSet,
        c.TriggerRemoved,
        c.KeptDropped,
        c.SignalKept,
        c.SignalPassedOver,
        c.SignalExpired,
        c.TriggerFired,
        c.FiringSkipped,
    ),
    Keep.FOR_EVER,
    key=KeyForm.TRIGGER,
)

# How the keys of these streams are made, and taken apart again.
trigger_key, run_key, ids_of, tag_key = keys.trigger_key, keys.run_key, keys.ids_of, keys.tag_key
